import { expect, test } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

async function told(
  leaderId: string | undefined,
): Promise<{ readonly at: number; readonly subject: string; readonly message: Envelope }[]> {
  const clock = new VirtualClock(1_000)
  const published: { at: number; subject: string; message: Envelope }[] = []
  const bus: Bus = {
    publish: (subject, message) => published.push({ at: clock.now(), subject, message }),
    request: () => {},
    subscribe: () => () => {},
    drain: () => Promise.resolve(),
  }
  const controller = createController(
    { clock, random: createSeededRandom('news'), bus, store: createMemoryStore() },
    leaderId === undefined ? {} : { leaderId },
  )
  await controller.start()
  clock.run(6_000, () => false)
  await controller.stop()
  const before = published.length
  clock.run(20_000, () => false)
  expect(published).toHaveLength(before)
  return published
}

test('A leader is announced once its epoch is durable, often at first, then every 2 s', async () => {
  const news = await told('this process')
  expect(news.map(({ at, subject }) => [at, subject])).toEqual(
    [1_000, 1_250, 1_750, 2_750, 4_750].map((at) => [at, 'gpu.v1.controller.leader']),
  )
  for (const { message } of news)
    expect(message).toMatchObject({ v: 1, epoch: 1, body: { op: 'leader', epoch: 1, id: 'this process' } })
})

test('A simulated controller sends no announcement', async () => {
  expect(await told(undefined)).toEqual([])
})
