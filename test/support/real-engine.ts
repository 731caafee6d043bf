import { createMemoryStore, type MemoryStoreOptions } from '../../controller/adapters/memory-store.ts'
import { Engine } from '../../controller/engine/engine.ts'
import { createViews } from '../../controller/query/live-views.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import type { ApiContractWorld } from './api-contract.ts'

/** The clock is stopped; due timers run after the call that set them. */
const clock: Clock = {
  now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  at(instant, fn) {
    if (instant > clock.now()) return () => {}
    const due = setImmediate(fn)
    return () => clearImmediate(due)
  },
  soon: (fn) => void setImmediate(fn),
}

/** The real engine over a store in memory. */
export async function realEngine(options: MemoryStoreOptions = {}): Promise<ApiContractWorld> {
  const store = createMemoryStore(options)
  const quiet = {
    send: () => {},
    onEvents: () => {},
    onFault: () => {},
    initialConfig: {},
    taskLeaseMs: null,
  }
  const engine = new Engine({ clock, random: createSeededRandom('api'), store, ...quiet })
  await engine.start()
  const views = createViews(engine, clock, store.reads)
  return {
    commands: engine.commands,
    views,
    addNode: ({ id, gpus, physicalMib }) => {
      const reports = Array.from({ length: gpus }, (_, index) => ({
        index,
        model: 'Test GPU',
        physical_mib: physicalMib,
        foreign_mib: 0,
      }))
      const identity = {
        op: 'hello',
        node_id: id,
        name: `node-${id.slice(-2)}`,
        address: '127.0.0.1',
        host_swap_mib: 131_072,
      } as const
      const hello = {
        ...identity,
        gpus: reports,
        signals_wanted: true,
        device: 'simulated' as const,
        allow_exec: true,
        tasks: [],
        finished_unacked: [],
      }
      return new Promise((resolve) => engine.hello(hello, { counter: 1, random: id }, 1, () => resolve()))
    },
    snapshot() {
      const nodes = [...views.nodes()].map((node) => [
        node.id,
        node.isCordoned,
        node.overcommitOverride,
        node.reserveOverrideMib,
        node.groups,
      ])
      const tasks = [...views.openTasks()].map(({ spec, state }) => ({ spec, state }))
      return JSON.stringify({
        config: views.config(),
        nodes,
        groups: [...views.groups()],
        tasks,
        counts: views.counts(),
      })
    },
  }
}
