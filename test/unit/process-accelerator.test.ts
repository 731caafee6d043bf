import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import type { AcceleratedTask } from '../../gpu-server/devices/accelerator.ts'
import { ProcessAccelerator } from '../../gpu-server/devices/process-accelerator.ts'
import { until } from '../support/live-cluster.ts'

const children = new Set<ChildProcess>()
afterAll(() => children.forEach((child) => child.kill('SIGKILL')))

/** A clock that the test advances. */
class Time {
  now = 0
  #waiting: { readonly at: number; readonly done: () => void }[] = []

  wait = (ms: number): Promise<void> =>
    new Promise((done) => {
      this.#waiting.push({ at: this.now + ms, done })
    })

  async pass(ms: number): Promise<void> {
    this.now += ms
    for (const { at, done } of this.#waiting) if (at <= this.now) done()
    this.#waiting = this.#waiting.filter(({ at }) => at > this.now)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function accelerator(
  gpus = 1,
  cpuMsOf?: (pid: number) => number | null,
): { readonly device: ProcessAccelerator; readonly time: Time } {
  const time = new Time()
  const declared = Array.from({ length: gpus }, () => ({
    model: 'declared',
    physicalMib: 1_000,
    swapMs: (_: string, mib: number) => mib,
  }))
  const device = new ProcessAccelerator({
    gpus: declared,
    now: () => time.now,
    wait: time.wait,
    ...(cpuMsOf === undefined ? {} : { cpuMsOf }),
  })
  return { device, time }
}

function task(child: ChildProcess | null, fields: Partial<AcceleratedTask> = {}): AcceleratedTask {
  const pids = child?.pid === undefined ? [] : [child.pid]
  const signal = (name: NodeJS.Signals) => (): Promise<void> => {
    child?.kill(name)
    return Promise.resolve()
  }
  const base = { taskId: 't', attempt: 1, gpus: [0], vramMib: 300 }
  return { ...base, processIds: () => pids, suspend: signal('SIGSTOP'), resume: signal('SIGCONT'), ...fields }
}

function sleeper(): ChildProcess {
  const child = spawn('sleep', ['1000'])
  children.add(child)
  return child
}

const stateOf = (child: ChildProcess): string =>
  /^State:\s+(\S)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? ''

it('A swap-out stops the process for the time of a copy, and a swap-in resumes it', async () => {
  const { device, time } = accelerator()
  const child = sleeper()
  const one = task(child)
  const ended: string[] = []
  void device.swapOut(one).then((outcome) => ended.push(`out ${outcome}`))
  await until('it stands still', () => stateOf(child) === 'T')
  await time.pass(0)
  await time.pass(299)
  expect(ended).toEqual([])
  await time.pass(1)
  expect(ended).toEqual(['out done'])
  expect(await device.residencyOf(one)).toBe('unknown')
  expect((await device.sample([one])).uses.get(one)?.usedMib).toEqual([0])
  void device.swapIn(one).then((outcome) => ended.push(`in ${outcome}`))
  await time.pass(0)
  await time.pass(299)
  expect(stateOf(child)).toBe('T')
  await time.pass(1)
  await until('it runs', () => stateOf(child) === 'S')
  expect(ended).toEqual(['out done', 'in done'])
  expect(await device.residencyOf(one)).toBe('resident')
  expect((await device.sample([one])).uses.get(one)?.usedMib).toEqual([300])
})

it('Transfers of one GPU run one by one, and transfers of other GPUs do not wait', async () => {
  const { device, time } = accelerator(2)
  const ended: string[] = []
  const fields = [
    { taskId: 'a', gpus: [0] },
    { taskId: 'b', gpus: [0] },
    { taskId: 'c', gpus: [1] },
  ]
  for (const each of fields) void device.swapIn(task(null, each)).then(() => ended.push(each.taskId))
  await time.pass(0)
  await time.pass(300)
  expect(ended).toEqual(['a', 'c'])
  await time.pass(300)
  expect(ended).toEqual(['a', 'c', 'b'])
})

it('A task that cannot be stopped or resumed keeps its residency', async () => {
  const { device, time } = accelerator()
  const no = (): Promise<void> => Promise.reject(new Error('no such attempt'))
  expect(await device.swapOut(task(null, { suspend: no }))).toBe('copy_failed')
  const back = device.swapIn(task(null, { resume: no }))
  await time.pass(0)
  await time.pass(300)
  expect(await back).toBe('copy_failed')
})

it('A task is busy if it used 5 % of a CPU since the last sample; the first sample is unknown', async () => {
  let cpuMs = 0
  const { device, time } = accelerator(1, () => cpuMs)
  const one = task(sleeper())
  const isBusy = async (): Promise<boolean | null | undefined> =>
    (await device.sample([one])).uses.get(one)?.isBusy
  expect(await isBusy()).toBe(null)
  for (const [used, expected] of [
    [49, false],
    [50, true],
    [0, false],
  ] as const) {
    cpuMs += used
    await time.pass(1_000)
    expect(await isBusy()).toBe(expected)
  }
  expect((await device.sample([task(null)])).uses.size).toBe(1)
})

it('CPU time is measured as the kernel counts it', async () => {
  const { device, time } = accelerator()
  const child = spawn(process.execPath, ['-e', 'for (;;);'])
  children.add(child)
  const one = task(child)
  await device.sample([one])
  await until('it is seen to be busy', async () => {
    await time.pass(10)
    return (await device.sample([one])).uses.get(one)?.isBusy === true
  })
})
