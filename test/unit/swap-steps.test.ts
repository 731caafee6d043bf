/** The rules of the swap methods, step by step, and what a server makes of measurements. */
import { describe, expect, it } from 'vitest'
import type { AcceleratedTask, TaskUse } from '../../gpu-server/devices/accelerator.ts'
import { HostTask } from '../../gpu-server/devices/host-task.ts'
import { SwapMethods, type SwapMethodsOptions } from '../../gpu-server/devices/swap-methods.ts'
import type { HookAnswer } from '../../gpu-server/core/swap-steps.ts'
import type { Guards } from '../../gpu-server/guard/guards.ts'

const VRAM_MIB = 16_000
const REPORTS = [{ index: 0, model: 'declared', physical_mib: 24_576, foreign_mib: 100 }]

function setup({ keepsMib = 600, isRest = true } = {}) {
  const asked: string[] = []
  const rests: number[] = []
  let now = 0
  const device = { usedMib: 600 }
  const options = {
    accelerator: { hasFree: () => Promise.resolve(true), usedMib: () => Promise.resolve([device.usedMib]) },
    hooks: {
      call: (_task: unknown, order: string): Promise<HookAnswer> => {
        asked.push(order)
        return Promise.resolve({ error: null, residentMib: null })
      },
    },
    now: () => now,
    onNote: (_task: unknown, why: string) => asked.push(why),
    restStays: (_task: unknown, mib: number) => rests.push(mib) > 0 && isRest,
  } as unknown as SwapMethodsOptions
  const start = { taskId: 't', attempt: 1, gpus: [0], vramMib: VRAM_MIB, swapMethod: 'hooks', isLease: false }
  const task = new HostTask(
    start as never,
    0,
    {} as Guards,
    { isStopped: false, isHeld: false },
    () => undefined,
  )
  const methods = new SwapMethods(options)
  const sampled = (usedMib: number): number => {
    methods.sampled(
      new Map<AcceleratedTask, TaskUse>([[task, { isBusy: false, usedMib: [usedMib] } as TaskUse]]),
    )
    return methods.withSurplus(REPORTS)[0]?.foreign_mib ?? 0
  }
  const wait = (ms: number): void => void (now += ms)
  const keeps = (): void => void (device.usedMib = keepsMib)
  return { task, methods, sampled, asked, rests, keeps, wait, device }
}

async function swappedOut(options: Parameters<typeof setup>[0] = {}) {
  const world = setup(options)
  expect(await world.methods.suspend(world.task)).toEqual({
    outcome: 'done',
    method: 'hooks',
    residualMib: 600,
  })
  world.task.isResident = false
  world.asked.length = 0
  world.keeps()
  return world
}

describe('VRAM of a task that its hooks have moved out', () => {
  it('is foreign as far as it is more than what stayed, and not at all while it returns', async () => {
    const { task, sampled } = await swappedOut()
    expect(sampled(600)).toBe(100)
    expect(sampled(900)).toBe(400)
    task.isMoving = true
    expect(sampled(VRAM_MIB)).toBe(100)
  })

  it('makes its server tell it to suspend again once most of it is back, from time to time', async () => {
    const { sampled, asked, wait } = await swappedOut()
    sampled(5_000)
    expect(asked).toEqual([])
    sampled(VRAM_MIB)
    await new Promise((resolve) => setImmediate(resolve))
    const said = 'it took its VRAM back while it was swapped out: it is told to suspend again'
    expect(asked).toEqual([said, 'suspend'])
    wait(60_000)
    sampled(VRAM_MIB)
    expect(asked).toHaveLength(2)
    wait(60_000)
    sampled(VRAM_MIB)
    expect(asked).toHaveLength(4)
  })

  it('is its rest, and no longer foreign, if it stays after it was told to suspend again', async () => {
    const { task, sampled, rests } = await swappedOut({ keepsMib: 9_000 })
    expect(sampled(9_000)).toBe(8_500)
    await new Promise((resolve) => setImmediate(resolve))
    expect(rests).toEqual([9_000])
    expect([task.residualMib, sampled(9_000)]).toEqual([9_000, 100])
  })

  it('stays foreign if it does not fit together with what others were given', async () => {
    const { task, methods, sampled } = await swappedOut({ keepsMib: 9_000, isRest: false })
    sampled(9_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(task.residualMib).toBe(600)
    expect(methods.withSurplus(REPORTS)[0]?.foreign_mib).toBe(8_500)
  })

  it('leaves at least 1 MiB to return, also if all of it stays', async () => {
    const { task, sampled } = await swappedOut({ keepsMib: VRAM_MIB })
    sampled(VRAM_MIB)
    await new Promise((resolve) => setImmediate(resolve))
    expect(task.residualMib).toBe(VRAM_MIB - 1)
  })

  it('is asked back only after an order to suspend again is over', async () => {
    const { task, methods, sampled, asked } = await swappedOut()
    sampled(VRAM_MIB)
    expect(await methods.resume(task)).toBe('done')
    expect(asked.slice(1)).toEqual(['suspend', 'resume'])
  })
})

describe('A suspend of a task whose server has restarted', () => {
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  /** The next server finds the task with its data in VRAM. */
  async function found() {
    const world = setup()
    world.device.usedMib = VRAM_MIB
    world.methods.undo(world.task)
    await settled()
    expect(world.asked).toEqual([])
    const use = async (usedMib: number): Promise<void> => {
      world.device.usedMib = usedMib
      world.sampled(usedMib)
      await settled()
    }
    return { ...world, use }
  }

  it('is undone at once if it is over', async () => {
    const { task, methods, asked } = setup()
    methods.undo(task)
    await settled()
    expect(asked).toEqual(['resume'])
  })

  it('is undone when it ends later, once', async () => {
    const { use, asked, wait } = await found()
    await use(VRAM_MIB)
    wait(20_000)
    await use(600)
    expect(asked).toEqual(['resume'])
    await use(VRAM_MIB)
    await use(600)
    expect(asked).toEqual(['resume'])
  })

  it('is not expected after the time for an order: the task may give up its VRAM by itself', async () => {
    const { use, asked, wait } = await found()
    wait(121_000)
    await use(600)
    expect(asked).toEqual([])
  })

  it('is not undone when this server has told the task to suspend', async () => {
    const { task, methods, use, device, asked } = await found()
    device.usedMib = 600
    await methods.suspend(task)
    await use(600)
    expect(asked).toEqual(['suspend'])
  })
})
