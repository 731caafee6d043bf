/**
 * R3: after a refusal, a node is not a candidate for the task before its next snapshot, even if another node
 * refuses it meanwhile.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import { expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import type { Envelope, NodeBody } from '../../protocol/envelope.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

const REQUEST = {
  ...TASK_DEFAULTS,
  id: 't',
  name: null,
  vramMib: 1000,
  groups: [],
  labels: {},
  owner: null,
  command: ['x'],
  maxRuntimeSeconds: null,
}

/** A server without a run lease, which refuses every start. */
class Refuser {
  readonly id: string
  starts = 0
  readonly #bus: Bus
  #seq = 0

  constructor(bus: Bus, name: string) {
    this.id = nodeIdFromName(name)
    this.#bus = bus
    bus.subscribe(nodeSubject(this.id, 'command'), ({ body }, _subject, reply) => {
      if (body.op !== 'start' || ++this.starts > 10) return
      const { task_id, attempt } = body
      const answer = { outcome: 'refused', reason: 'no_lease', residency: 'none', generation: 0 } as const
      reply(this.#seal({ op: 'result', task_id, attempt, ...answer }))
    })
  }

  hello(): void {
    const gpus = [{ index: 0, model: 'm', physical_mib: 4000, foreign_mib: 0 }]
    const identity = { node_id: this.id, name: this.id, address: 'a', host_swap_mib: 4000 }
    const abilities = { signals_wanted: true, device: 'simulated', allow_exec: true } as const
    this.#say('hello', { op: 'hello', ...identity, ...abilities, gpus, tasks: [], finished_unacked: [] })
  }

  heartbeat(): void {
    const gpus = [{ index: 0, model: 'm', physical_mib: 4000, foreign_mib: 0 }]
    this.#say('heartbeat', { op: 'heartbeat', node_id: this.id, gpus, tasks: [], finished_unacked: [] })
  }

  #say(verb: 'hello' | 'heartbeat', body: NodeBody): void {
    this.#bus.request(nodeSubject(this.id, verb), this.#seal(body), 1000, () => {})
  }

  #seal(body: NodeBody): Envelope {
    const seq = ++this.#seq
    return {
      v: PROTOCOL_VERSION,
      id: `${this.id}.${seq}`,
      sent_mono: seq,
      boot: { counter: 1, random: this.id },
      seq,
      epoch: 1,
      body,
    }
  }
}

it('A task that every node refuses is tried once on each, and again after their next snapshots', async () => {
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock)
  const store = createMemoryStore()
  const controller = createController(
    { clock, random: createSeededRandom(1), bus, store },
    { initialConfig: { safety_reserve_mib: 0 }, areHeartbeatsElided: true },
  )
  await controller.start()
  const [a, b] = [new Refuser(bus, 'a'), new Refuser(bus, 'b')]
  const runAll = (): void => clock.run(clock.now(), () => false)
  const starts = (): number[] => [a.starts, b.starts]
  a.hello()
  b.hello()
  controller.commands.submitTask(REQUEST, () => {})
  runAll()
  expect(starts()).toEqual([1, 1])
  b.heartbeat()
  runAll()
  expect(starts()).toEqual([1, 2])
  a.heartbeat()
  b.heartbeat()
  runAll()
  expect(starts()).toEqual([2, 3])
})
