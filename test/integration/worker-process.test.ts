/** Worker processes: the caller is informed of any outcome and continues. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it, vi } from 'vitest'
import { JobProcess } from '../../services/workers/job-process.ts'
import type { WorkerLimits } from '../../services/workers/worker-process.ts'
import { WorkerFault } from '../../services/workers/worker-process.ts'
import type { TryingJob } from '../support/trying-worker.ts'

const open: JobProcess<TryingJob, unknown>[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((worker) => worker.end()))
})

function start(limits: WorkerLimits = {}): JobProcess<TryingJob, unknown> {
  const worker = new JobProcess<TryingJob, unknown>(
    new URL('../support/trying-worker.ts', import.meta.url),
    limits,
  )
  open.push(worker)
  return worker
}

it('answers one job after the other, and reports exceptions by name without further effect', async () => {
  const worker = start()
  const value = {
    nothing: undefined,
    never: Infinity,
    none: null,
    bytes: new Uint8Array([1, 2]),
    byName: new Map([['a', 1]]),
  }
  expect(await worker.ask({ kind: 'echo', value })).toEqual(value)
  await expect(worker.ask({ kind: 'refuse' })).rejects.toMatchObject({
    name: 'RangeError',
    message: 'it may not be',
  })
  expect(await worker.ask({ kind: 'echo', value: 2 })).toBe(2)
})

it('that needs too much memory ends, and the reason is reported', async () => {
  const worker = start({ heapMib: 40 })
  await expect(worker.ask({ kind: 'hoard' })).rejects.toThrow(
    new WorkerFault('it needed more memory than a simulation may have'),
  )
  expect(worker.isEnded).toBe(true)
  await expect(worker.ask({ kind: 'echo', value: 1 })).rejects.toBeInstanceOf(WorkerFault)
})

it('that crashes is reported with its signal', async () => {
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  await expect(start().ask({ kind: 'abort' })).rejects.toThrow(
    new WorkerFault('its process ended with SIGABRT'),
  )
  said.mockRestore()
})

it('can be ended during its work, and accepts no further jobs', async () => {
  const worker = start()
  const heard = Promise.withResolvers<void>()
  const asked = worker.ask({ kind: 'work' }, () => heard.resolve())
  await heard.promise
  const ended = worker.end()
  expect(worker.isEnded).toBe(true)
  await expect(asked).rejects.toThrow(new WorkerFault('its process was ended'))
  await ended
})

it.runIf(process.platform === 'linux')(
  'lowers the priority of all its threads, including those of the garbage collector',
  async () => {
    const niceness = (await start().ask({ kind: 'nice' })) as readonly number[]
    expect(niceness.length).toBeGreaterThan(1)
    expect(new Set(niceness)).toEqual(new Set([19]))
  },
)

it.runIf(process.platform === 'linux')(
  'ends when its parent is killed, even while it reads no messages',
  async () => {
    const parent = spawn(process.execPath, [
      fileURLToPath(new URL('../support/trying-parent.ts', import.meta.url)),
    ])
    const [said] = (await once(parent.stdout, 'data')) as [Buffer]
    const worker = Number(said.toString('utf8'))
    expect(isAlive(worker)).toBe(true)
    parent.kill('SIGKILL')
    await expect.poll(() => isAlive(worker)).toBe(false)
  },
)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
