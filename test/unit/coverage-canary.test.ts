import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { canaryInTheTest } from '../support/coverage-canary/in-the-test.ts'

/** tools/coverage/check-coverage.ts checks after the run that the coverage report contains these. */
const canary = (name: string): URL => new URL(`../support/coverage-canary/${name}.ts`, import.meta.url)

test('A canary in the thread of its test runs', () => {
  expect(canaryInTheTest('even')).toBe('sings in the test')
})

test('A canary in a worker thread runs', async () => {
  const worker = new Worker(canary('in-a-worker-thread'))
  const exited = once(worker, 'exit')
  const [song] = (await once(worker, 'message')) as [string]
  expect(song).toBe('sings in a worker thread')
  expect(await exited).toEqual([0])
})

test('A canary in a child process runs', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    fileURLToPath(canary('in-a-child-process')),
  ])
  expect(stdout).toBe('sings in a child process\n')
})
