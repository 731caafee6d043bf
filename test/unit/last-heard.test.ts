/** When a node was last seen: now, for a simulated node whose heartbeats are not sent one by one. */
import { expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { apiClient } from '../support/api-client.ts'
import type { ApiWorld } from '../support/api-world.ts'
import { HELLO } from '../support/hello.ts'

const ID = HELLO.node_id
const LATER_MS = 10_000

it.each([
  ['is now if heartbeats without changes are not sent', true, LATER_MS],
  ['is the time of its last message if heartbeats are sent', false, 0],
])('The last contact of a node that is up %s', async (_, areHeartbeatsElided, afterMs) => {
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock)
  const controller = createController(
    { clock, random: createSeededRandom(1), bus, store: createMemoryStore() },
    { areHeartbeatsElided },
  )
  await controller.start()
  const helloAt = clock.now()
  const envelope = {
    v: PROTOCOL_VERSION,
    id: 'h1',
    sent_mono: 1,
    boot: { counter: 1, random: 'x' },
    seq: 1,
    epoch: 1,
  }
  bus.request(nodeSubject(ID, 'hello'), { ...envelope, body: HELLO } as never, 1000, () => {})
  clock.at(helloAt + LATER_MS, () => {})
  clock.run(helloAt + LATER_MS, () => false)
  const api = await apiClient(controller as unknown as ApiWorld)
  const { body } = await api.send('GET', `/nodes/${ID}`)
  expect([body.status, Date.parse(body.last_seen_at) - helloAt]).toEqual(['up', afterMs])
  await api.app.close()
  await controller.stop()
})
