/** The task identity that a server reports is stored, also over a restart of the controller, and shown. */
import { expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { presentNode, readingsOf } from '../../controller/api/nodes/present.ts'
import { createController, type Controller } from '../../controller/controller.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { Hello } from '../../protocol/messages.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { HELLO } from '../support/hello.ts'

const ID = HELLO.node_id

it('A server may begin to report its task identity, and stop again', async () => {
  const store = createMemoryStore()
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock)
  let seq = 0
  const start = async (): Promise<Controller> => {
    const controller = createController(
      { clock, random: createSeededRandom(1), bus, store },
      { areHeartbeatsElided: true },
    )
    await controller.start()
    return controller
  }
  const shown = ({ views }: Controller): unknown => {
    const node = views.node(ID)
    return node === undefined
      ? 'unknown'
      : presentNode(node, DEFAULT_CONFIG, readingsOf(node, views)).task_identity
  }
  const says = (more: Partial<Hello>): void => {
    const envelope = {
      v: PROTOCOL_VERSION,
      sent_mono: ++seq,
      boot: { counter: 1, random: 'x' },
      seq,
      epoch: 1,
    } as const
    bus.request(
      nodeSubject(ID, 'hello'),
      { ...envelope, id: `h${seq}`, body: { ...HELLO, ...more } },
      1000,
      () => {},
    )
    clock.run(clock.now(), () => false)
  }
  const first = await start()
  says({})
  expect(shown(first)).toBeNull()
  for (const kind of ['task_user', 'root', 'server_user', 'uid_per_attempt'] as const) {
    says({ task_identity: kind })
    expect(shown(first)).toBe(kind)
  }
  await first.stop()
  const second = await start()
  expect(shown(second)).toBe('uid_per_attempt')
  says({})
  expect(shown(second)).toBeNull()
  await second.stop()
})
