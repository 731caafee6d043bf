/**
 * A controller that may have been replaced: its answers rely on an epoch that it wrote recently (R5, R9), and
 * it writes nothing before its epoch.
 */
import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { Engine } from '../../controller/engine/engine.ts'
import type { LiveNode } from '../../controller/state/facts.ts'
import type { Batch, Store } from '../../controller/ports/store.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import { LivenessTimer } from '../../controller/wire/liveness-timer.ts'
import type { Heartbeat, Hello } from '../../protocol/messages.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

const NODE_ID = '5f0c9a52-1d3e-4b7a-9c11-000000000001'
const GPUS = [{ index: 0, model: 'Test GPU', physical_mib: 1_000, foreign_mib: 0 }]
const SEEN = { tasks: [], finished_unacked: [] }
const HELLO: Hello = {
  op: 'hello',
  node_id: NODE_ID,
  name: 'n1',
  address: '127.0.0.1',
  host_swap_mib: 1_000,
  gpus: GPUS,
  signals_wanted: true,
  device: 'simulated',
  allow_exec: true,
  ...SEEN,
}
const HEARTBEAT: Heartbeat = { op: 'heartbeat', node_id: NODE_ID, gpus: GPUS, ...SEEN }

interface UnderWay {
  readonly batch: Batch
  durable(): void
  fails(): void
}

/** A controller whose commits end when the test says so. */
class Leader {
  readonly clock = new VirtualClock(1_000_000)
  readonly commits: UnderWay[] = []
  readonly engine: Engine
  readonly faults: unknown[] = []
  #seq = 1

  constructor() {
    const inner = createMemoryStore()
    const store: Store = { ...inner, commit: (batch) => this.#commit(inner, batch) }
    this.engine = new Engine({
      clock: this.clock,
      random: createSeededRandom('leader'),
      store,
      initialConfig: {},
      taskLeaseMs: null,
      send: () => {},
      onEvents: () => {},
      onFault: (fault) => this.faults.push(fault),
    })
  }

  /** It has written its epoch and knows one node; no request is in progress. */
  static async ofOneNode(): Promise<Leader> {
    const leader = new Leader()
    const begun = leader.engine.start()
    await leader.settle()
    leader.takeCommit().durable()
    await begun
    leader.engine.hello(HELLO, { counter: 1, random: 'a' }, 1, () => {})
    await leader.pass(0)
    leader.takeCommit().durable()
    await leader.settle()
    expect(leader.commits).toEqual([])
    return leader
  }

  /** Sends a heartbeat without changes. @returns a function that returns whether it has been answered */
  heartbeat(): () => boolean {
    let isAnswered = false
    const node = this.engine.cluster.nodes.get(NODE_ID) as LiveNode
    this.engine.heartbeat(node, HEARTBEAT, (this.#seq += 1), () => (isAnswered = true))
    return () => isAnswered
  }

  takeCommit(): UnderWay {
    const commit = this.commits.shift()
    if (commit === undefined) throw new Error('nothing is under way to the store')
    return commit
  }

  async pass(ms: number): Promise<void> {
    const end = this.clock.now() + ms
    do await this.settle()
    while (this.clock.step(end))
    this.clock.advanceTo(end)
  }

  async settle(): Promise<void> {
    for (let each = 0; each < 8; each++) await Promise.resolve()
  }

  #commit(inner: Store, batch: Batch): Promise<void> {
    return new Promise((resolve, reject) => {
      const durable = (): void => {
        void inner.commit(batch)
        resolve()
      }
      this.commits.push({
        batch,
        durable,
        fails: () => reject(new StoreFault('another controller has taken over')),
      })
    })
  }
}

describe('a starting controller', () => {
  it('A new controller writes its epoch first and makes it durable before any other write', async () => {
    const leader = new Leader()
    const begun = leader.engine.start()
    await leader.settle()
    leader.engine.commands.putConfig({ max_tasks_per_gpu: 7 }, null, () => {})
    await leader.pass(0)
    expect(leader.commits).toHaveLength(1)
    leader.takeCommit().durable()
    await begun
    await leader.pass(0)
    const { batch } = leader.takeCommit()
    expect([batch.config?.fields.max_tasks_per_gpu, leader.commits]).toEqual([7, []])
  })
})

describe('an idle controller', () => {
  it('An idle controller renews its epoch every few seconds, and ends when it cannot', async () => {
    const leader = await Leader.ofOneNode()
    const silence = new LivenessTimer(leader.engine, leader.clock)
    silence.begin()
    await leader.pass(3_000)
    const renewal = leader.takeCommit()
    expect(renewal.batch.events).toEqual([])
    renewal.durable()
    await leader.pass(3_000)
    leader.takeCommit().fails()
    await leader.settle()
    expect(leader.faults).toHaveLength(1)
    silence.stop()
  })
})

describe('a commit that fails', () => {
  it('A change in a failed commit is unknown, and one that waited for it was not written', async () => {
    const leader = await Leader.ofOneNode()
    const codes: string[] = []
    for (const value of [7, 8]) {
      leader.engine.commands.putConfig({ max_tasks_per_gpu: value }, null, (answer) => {
        codes.push(`${value}: ${answer.ok ? 'ok' : answer.refusal.code}`)
      })
      await leader.pass(0)
    }
    leader.takeCommit().fails()
    await leader.settle()
    expect(codes).toEqual(['7: commit_unknown', '8: store_failed'])
  })
})

describe('an answer that needs no write', () => {
  it('An answer that needs no write is sent at once if the epoch was written recently', async () => {
    const leader = await Leader.ofOneNode()
    await leader.pass(4_000)
    expect(leader.heartbeat()()).toBe(true)
    expect(leader.commits).toEqual([])
  })

  it('An answer that needs no write waits for the renewal of an old epoch', async () => {
    const leader = await Leader.ofOneNode()
    await leader.pass(4_001)
    const isAnswered = leader.heartbeat()
    await leader.pass(1_000)
    expect(isAnswered()).toBe(false)
    leader.takeCommit().durable()
    await leader.settle()
    expect(isAnswered()).toBe(true)
  })

  it('An answer is never sent after another controller has taken over', async () => {
    const leader = await Leader.ofOneNode()
    await leader.pass(4_001)
    const isAnswered = leader.heartbeat()
    leader.takeCommit().fails()
    await leader.pass(60_000)
    expect([isAnswered(), leader.faults.length]).toEqual([false, 1])
  })

  it('A slow commit proves nothing: another controller may have taken over since', async () => {
    const leader = await Leader.ofOneNode()
    leader.engine.commands.putConfig({ max_tasks_per_gpu: 7 }, null, () => {})
    await leader.pass(0)
    const slow = leader.takeCommit()
    await leader.pass(4_001)
    const isAnswered = leader.heartbeat()
    slow.durable()
    await leader.settle()
    expect(isAnswered()).toBe(false)
    leader.takeCommit().fails()
    await leader.settle()
    expect(isAnswered()).toBe(false)
  })
})
