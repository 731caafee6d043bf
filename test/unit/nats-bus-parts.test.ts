import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { Arrivals } from '../../controller/adapters/nats/arrivals.ts'
import { DEFAULT_LIMITS } from '../../controller/adapters/nats/limits.ts'

test('An exception in a listener ends the process, and not the reader that called the listener', async () => {
  const file = JSON.stringify(import.meta.resolve('../../controller/adapters/nats/throw-async.ts'))
  const script = `const { callThrowingAsync } = await import(${file})
    callThrowingAsync(() => { throw new Error('broken invariant') })
    console.log('the reader goes on')`
  const ended = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  await expect(ended).rejects.toMatchObject({
    code: 1,
    stdout: 'the reader goes on\n',
    stderr: expect.stringContaining('broken invariant') as string,
  })
})

test('Messages are handled in order and in batches, and a limited number can wait', async () => {
  const handled: number[] = []
  const arrivals = new Arrivals({
    ...DEFAULT_LIMITS,
    turnMs: 0,
    maxWaitingMessages: 10_000,
    maxWaitingBytes: 90_000,
  })
  const taken = Array.from({ length: 10_000 }, (_, n) =>
    arrivals.take({ bytes: 10, handle: () => handled.push(n) }),
  )
  expect(taken.filter((isTaken) => isTaken)).toHaveLength(9_000)
  expect(arrivals.count + handled.length).toBe(9_000)
  arrivals.finish()
  expect(handled).toEqual(Array.from({ length: 9_000 }, (_, n) => n))
  expect(arrivals.count).toBe(0)
  await new Promise((resolve) => setImmediate(resolve))
  expect(handled).toHaveLength(9_000)
})
