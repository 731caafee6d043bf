/** The time limits of reading scenarios. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { ScenarioReader } from '../../services/simulations/library/scenario-reader.ts'
import { WorkerFault } from '../../services/workers/worker-process.ts'
import { busyScenario, temporaryFolder } from '../support/headroom-command.ts'

const folder = temporaryFolder()
let reader = new ScenarioReader()
afterEach(async () => {
  vi.useRealTimers()
  await reader.close()
})

/** The reader waits for the text of this file, and uses no CPU time. */
async function readFromPipe(name: string) {
  const file = join(folder, name)
  execFileSync('mkfifo', [file])
  reader = new ScenarioReader()
  await reader.read({ kind: 'library', files: [] })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const reading = reader.read({ kind: 'library', files: [{ file, purpose: null }] })!
  return { reading, write: () => writeNow(file, busyScenario()) }
}

/** Throws while the reader has not opened it. */
function writeNow(pipe: string, text: string): void {
  const fd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
  writeSync(fd, text)
  closeSync(fd)
}

it('a machine without time for the reader refuses no scenario', async () => {
  const { reading, write } = await readFromPipe('slow')
  await vi.advanceTimersByTimeAsync(59_000)
  vi.useRealTimers()
  await vi.waitFor(write, { timeout: 90_000 })
  expect(await reading).toMatchObject({ kind: 'library', entries: [{ name: 'busy' }] })
})

it('a reader that does not answer for a minute is ended, and others can read', async () => {
  const { reading } = await readFromPipe('silent')
  const ended = expect(reading).rejects.toThrow(new WorkerFault('it took more than 60 s to read'))
  await vi.advanceTimersByTimeAsync(60_100)
  await ended
  expect(await reader.read({ kind: 'library', files: [] })).toEqual({ kind: 'library', entries: [] })
})
