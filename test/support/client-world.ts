/** A controller in virtual time with one GPU server, and clients that send requests over the bus. */
import type { Bus } from '../../controller/ports/bus.ts'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import type { Controller, ControllerOptions } from '../../controller/controller.ts'
import type { RequestOutcome } from '../../controller/ports/bus.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { SubmitTask } from '../../protocol/client-messages.ts'
import type { Body } from '../../protocol/envelope.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from './plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { envelopeOf } from './envelopes.ts'

export interface ClientWorld {
  readonly controller: Controller
  readonly bus: Bus
  readonly store: Store
  /** Returns the body of the answer. */
  ask(subject: string, body: Body, id?: string): Promise<Body>
  pass(ms: number): Promise<void>
}

export async function clientWorld(
  options: ControllerOptions = {},
  store: Store = createMemoryStore(),
): Promise<ClientWorld> {
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock, 'wire', 1)
  const controller = createController({ clock, random: createSeededRandom('clients'), bus, store }, options)
  await controller.start()
  const pass = async (ms: number): Promise<void> => {
    const end = clock.now() + ms
    do await settle()
    while (clock.step(end))
    clock.advanceTo(end)
  }
  return {
    controller,
    bus,
    store,
    pass,
    async ask(subject, body, id) {
      const outcomes: RequestOutcome[] = []
      bus.request(subject, envelopeOf(body, id), 10_000, (outcome) => outcomes.push(outcome))
      while (outcomes.length === 0) await pass(1)
      const [outcome] = outcomes
      if (outcome === undefined || !outcome.answered)
        throw new Error(`no answer on ${subject}: ${outcome?.why}`)
      return outcome.answer.body
    },
  }
}

/** Promises of the store are settled between two instants. */
async function settle(): Promise<void> {
  for (let each = 0; each < 8; each++) await Promise.resolve()
}

export function aSubmission(changes: Partial<SubmitTask> = {}): SubmitTask {
  return {
    op: 'submit',
    name: null,
    vram_mib: 8_192,
    gpu_count: 1,
    gpu_mode: 'shared',
    noswap: 0,
    priority: 2,
    groups: [],
    labels: [],
    command: null,
    max_runtime_seconds: null,
    on_node_loss: 'wait',
    ...changes,
  }
}
