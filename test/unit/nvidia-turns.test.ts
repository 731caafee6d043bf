import { expect, test } from 'vitest'
import { KeyQueue } from '../../gpu-server/devices/nvidia/key-queue.ts'

test('Work on a common key runs one by one in order, other work at once', async () => {
  const turns = new KeyQueue<number>()
  const seen: string[] = []
  const gates = new Map<string, () => void>()
  const work = (name: string) => (): Promise<string> =>
    new Promise((resolve) => {
      seen.push(name)
      gates.set(name, () => resolve(name))
    })
  const a = turns.run([1, 2], work('a'))
  const b = turns.run([2, 3], () => Promise.reject(new Error('b')))
  const c = turns.run([3], work('c'))
  const d = turns.run([4], work('d'))
  gates.get('d')?.()
  await new Promise((resolve) => setImmediate(resolve))
  gates.get('d')?.()
  expect(await d).toBe('d')
  expect(seen).toEqual(['a', 'd'])
  gates.get('a')?.()
  expect(await a).toBe('a')
  await expect(b).rejects.toThrow('b')
  await new Promise((resolve) => setImmediate(resolve))
  gates.get('c')?.()
  expect(await c).toBe('c')
})
