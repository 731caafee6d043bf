/** The agent alone, with a real process whose cgroup is a folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { SwapOutcome } from '../../../gpu-server/core/device.ts'
import type { AcceleratedTask } from '../../../gpu-server/devices/accelerator.ts'
import { ProcessAccelerator } from '../../../gpu-server/devices/process-accelerator.ts'
import { stateOf } from '../../../gpu-server/guard/process-table.ts'
import { PodAgent } from '../../../gpu-server/pods/pod-agent.ts'
import { PodCgroups } from '../../../gpu-server/pods/pod-cgroups.ts'
import { swapSetting } from '../../../operator/contract/variables.ts'
import { WAIT } from '../../support/wait.ts'

const ID = 'ab'.repeat(32)
const NEXT_ID = 'cd'.repeat(32)
const POD = { pod: 'u', containers: [ID], gpus: [0], vram_mib: 1_024 }
let folder: string
let foreignMib = 0
/** Pods keep the GPU busy while they should be swapped out. */
let wakes = false
class Occupied extends ProcessAccelerator {
  override gpus() {
    return super.gpus().map((gpu) => ({ ...gpu, foreign_mib: foreignMib }))
  }
  override swapOut(task: AcceleratedTask): Promise<SwapOutcome> {
    return wakes ? Promise.resolve('woke_while_locked') : super.swapOut(task)
  }
}
let child: ChildProcess
let agent: PodAgent | null = null
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-pod-agent-'))
})
afterEach(async () => {
  child.kill('SIGKILL')
  await agent?.close()
  agent = null
  rmSync(folder, { recursive: true })
})

function startProcess(env: Readonly<Record<string, string>> = {}, id = ID): number {
  child = spawn('sleep', ['1000'], { env, stdio: 'ignore' })
  const { pid = 0 } = child
  const cgroup = join(folder, 'kubepods', `cri-containerd-${id}.scope`)
  mkdirSync(cgroup, { recursive: true })
  writeFileSync(join(cgroup, 'cgroup.procs'), `${pid}\n`)
  return pid
}
async function open(): Promise<PodAgent> {
  const now = (): number => Math.floor(performance.now())
  const wait = (ms: number) => delay(ms)
  const gpus = [{ model: 'X', physicalMib: 1_024, swapMs: () => 0 }]
  agent = await PodAgent.open({
    ...{ node: 'a', stateFolder: folder, hostSwapMib: 1_024, idleAfterMs: 300, now, wait },
    accelerator: new Occupied({ gpus, now, wait }),
    cgroups: new PodCgroups(folder),
    whyNot: (environment) => (swapSetting(environment).isSwappable ? null : 'kept by its environment'),
    onNote: () => {},
    ...{ watch: null, onRequest: () => {} },
  })
  return agent
}
/** Only an idle pod is swapped out. */
async function isIdle(): Promise<void> {
  await vi.waitFor(async () => {
    await agent?.sample()
    expect(agent?.report().pods).toMatchObject([{ wants_gpu: false }])
  }, WAIT)
}
async function ordered(wanted: 'in' | 'out', order: number) {
  agent?.obey({ pods: [{ ...POD, order: 0, wanted: 'in' }] })
  if (wanted === 'out') await isIdle()
  agent?.obey({ pods: [{ ...POD, order, wanted }] })
  await agent?.settled()
  return agent?.report().pods[0]
}

it('A process with VENDOR_SWAP_FROM_VRAM=0 is never stopped', async () => {
  const pid = startProcess({ VENDOR_SWAP_FROM_VRAM: '0', PATH: process.env['PATH'] ?? '' })
  await open()
  await delay(50)
  const report = await ordered('out', 1)
  expect(report).toMatchObject({
    ...{ residency: 'in', outcome: 'not_swappable', why_not: 'kept by its environment' },
  })
  expect(stateOf(pid)).not.toBe('T')
})

it('An order is carried out once, however often it is repeated', async () => {
  const pid = startProcess()
  await open()
  expect(await ordered('out', 1)).toMatchObject({ residency: 'out', order: 1, outcome: 'done' })
  expect(stateOf(pid)).toBe('T')
  expect(await ordered('out', 1)).toMatchObject({ residency: 'out', order: 1, outcome: 'done' })
  expect(await ordered('in', 2)).toMatchObject({ residency: 'in', order: 2, outcome: 'done' })
  expect(stateOf(pid)).not.toBe('T')
})

it('A pod that wants its GPU is not swapped out by an order from before that', async () => {
  const pid = startProcess()
  const opened = await open()
  opened.obey({ pods: [{ ...POD, order: 1, wanted: 'out' }] })
  await opened.settled()
  expect(opened.report().pods).toMatchObject([{ residency: 'in', outcome: 'woke_while_locked' }])
  expect(stateOf(pid)).not.toBe('T')
})

it('A pod that wakes during its swap-out counts as just used, before a sample shows it', async () => {
  startProcess()
  await open()
  wakes = true
  const report = await ordered('out', 1)
  wakes = false
  expect(report).toMatchObject({ residency: 'in', outcome: 'woke_while_locked', wants_gpu: true })
  expect(report?.idle_ms).toBeLessThan(300)
})

it('A pod that the operator knows no more does not stay stopped', async () => {
  const pid = startProcess()
  const opened = await open()
  await ordered('out', 1)
  opened.obey({ pods: [] })
  await opened.settled()
  expect(stateOf(pid)).not.toBe('T')
})

it('A swap-out that an earlier agent began, and did not finish, is taken back', async () => {
  const pid = startProcess()
  writeFileSync(join(folder, 'out-pods.json'), JSON.stringify([POD]))
  const opened = await open()
  expect(opened.report().pods[0]).toMatchObject({ residency: 'in' })
  expect(stateOf(pid)).not.toBe('T')
})

it('Swap marks are on the disk before a swap begins, and survive an agent that is killed', async () => {
  startProcess()
  const killed = await open()
  const marks = [{ gpu: 'a-GPU-0', class: 'non_p0' as const, round: 3, decision: 7 }]
  killed.obey({ pods: [{ ...POD, order: 0, wanted: 'in' }] })
  await isIdle()
  killed.obey({ pods: [{ ...POD, marks, order: 1, wanted: 'out' }] })
  const { pods } = JSON.parse(readFileSync(join(folder, 'pod-history.json'), 'utf8')) as { pods: unknown }
  expect(pods).toMatchObject([{ pod: 'u', marks }])
  await killed.settled()
  const next = await open()
  expect(next.report().pods).toMatchObject([{ residency: 'out', marks }])
  await ordered('in', 2)
  const last = await open()
  expect(last.report().pods).toMatchObject([{ residency: 'in', marks }])
})

it('An agent that starts again continues the idle time of a pod, except after a kill', async () => {
  startProcess()
  const first = await open()
  first.obey({ pods: [{ ...POD, order: 0, wanted: 'in' }] })
  const idleMs = async (): Promise<number> => {
    await agent?.sample()
    const [report] = agent?.report().pods ?? []
    return report?.wants_gpu === false ? report.idle_ms : 0
  }
  await vi.waitFor(async () => expect(await idleMs()).toBeGreaterThanOrEqual(300), WAIT)
  await first.close()
  const next = await open()
  expect(next.report().pods).toMatchObject([{ pod: 'u', residency: 'in', wants_gpu: false }])
  expect(next.report().pods[0]?.idle_ms).toBeGreaterThanOrEqual(300)
  // It does not close: it is killed.
  const last = await open()
  last.obey({ pods: [{ ...POD, order: 0, wanted: 'in' }] })
  expect(last.report().pods).toMatchObject([{ wants_gpu: true }])
})

it('A pod whose container has started again counts as just used', async () => {
  startProcess()
  writeFileSync(
    join(folder, 'pod-history.json'),
    JSON.stringify({
      pods: [{ ...POD, containers: ['cd'.repeat(32)], marks: [], idle_ms: 5_000 }],
      ...{ ended_at: Math.floor(performance.now()), rounds: [] },
    }),
  )
  const opened = await open()
  opened.obey({ pods: [{ ...POD, order: 0, wanted: 'in' }] })
  expect(opened.report().pods).toMatchObject([{ pod: 'u', wants_gpu: true }])
})

it('A pod whose container starts again while it is out is swapped out again, and wants back', async () => {
  startProcess()
  await open()
  expect(await ordered('out', 1)).toMatchObject({ residency: 'out' })
  child.kill('SIGKILL')
  const pid = startProcess({}, NEXT_ID)
  const obeyed = async (order: number, ...containers: readonly string[]) => {
    const wanted = order === 1 ? ('out' as const) : ('in' as const)
    agent?.obey({ pods: [{ ...POD, containers: [...containers], order, wanted }] })
    await agent?.settled()
    return agent?.report().pods[0]
  }
  expect(await obeyed(1)).toMatchObject({ residency: 'out' })
  const out = { residency: 'out', order: 1, outcome: 'done', wants_gpu: true }
  expect(await obeyed(1, NEXT_ID)).toMatchObject(out)
  expect(stateOf(pid)).toBe('T')
  expect(JSON.parse(readFileSync(join(folder, 'out-pods.json'), 'utf8'))).toMatchObject([
    { containers: [NEXT_ID] },
  ])
  expect(await obeyed(1, NEXT_ID)).toMatchObject(out)
  expect(await obeyed(2, NEXT_ID)).toMatchObject({ residency: 'in', order: 2, outcome: 'done' })
  expect(stateOf(pid)).not.toBe('T')
})

it('A pod of which one container starts again while it is out wants to return', async () => {
  startProcess()
  const opened = await open()
  opened.obey({ pods: [{ ...POD, order: 0, wanted: 'in' }] })
  await vi.waitFor(async () => {
    await opened.sample()
    expect(opened.report().pods).toMatchObject([{ wants_gpu: false }])
  }, WAIT)
  expect(await ordered('out', 1)).toMatchObject({ residency: 'out', wants_gpu: false })
  opened.obey({ pods: [{ ...POD, containers: [ID, NEXT_ID], order: 1, wanted: 'out' }] })
  expect(opened.report().pods).toMatchObject([{ residency: 'out', wants_gpu: true }])
})

it('A state file that cannot be read is a fault that names the place', async () => {
  startProcess()
  writeFileSync(join(folder, 'out-pods.json'), JSON.stringify([{ ...POD, gpus: [99] }]))
  await expect(open()).rejects.toThrow(/out-pods\.json: its content\.pods\[0\]\.gpus\[0\]/)
})

it('VRAM of other processes counts after ten samples, so that a pod which starts does not', async () => {
  startProcess()
  const opened = await open()
  const foreign = () => opened.report().gpus?.[0]
  expect(foreign()).toEqual({ uuid: 'a-GPU-0', model: 'X', vram_mib: 1_024 })
  foreignMib = 100
  for (let samples = 0; samples < 9; samples += 1) await opened.sample()
  expect(foreign()).not.toHaveProperty('foreign_mib')
  await opened.sample()
  expect(foreign()?.foreign_mib).toBe(100)
})
