/** A fictitious event history for a checker; without an engine behind it, it may break any rule. */
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Event, EventData, EventKind } from '../../controller/model/event.ts'
import { AssertionChecker } from '../../simulator/check/checker.ts'
import type { Observed, ObservedAttempt, ObservedRequest } from '../../simulator/check/observed.ts'
import type { Violation } from '../../simulator/check/violation.ts'
import type { Metrics } from '../../simulator/scenario/metrics.ts'
import type { AlwaysName, Assertions } from '../../simulator/scenario/assertions.ts'

const NO_METRICS: Metrics = {
  jct_s: null,
  queue_wait_s: null,
  slowdown: null,
  makespan_s: null,
  utilization_percent: null,
  starvation_percent: { total: 0, queue: 0, swap: 0, compute: 0 },
  swaps_per_hour: 0,
  swapped_gib_per_hour: 0,
  swap_jain: null,
  tasks: { submitted: 0, completed: 0, failed: 0, unfinished: 0 },
}

interface Victim {
  readonly id: string
  readonly gpu?: number
  readonly class?: 'non_p0' | 'p0'
}

/**
 * Nodes `a` and `b` with two GPUs of 1000 MiB each, a reserve of 100 MiB, 50 % overcommit, and defaults for
 * the rest.
 */
export class ForgedRun {
  readonly checker: AssertionChecker
  now = 1_000_000
  readonly #requests = new Map<string, ObservedRequest>()
  readonly #attempts = new Map<string, Map<string, ObservedAttempt>>([
    ['a', new Map()],
    ['b', new Map()],
  ])
  #seq = 0

  constructor(assertions: Partial<Assertions>, config: Partial<ConfigFields> = {}) {
    const node = { gpuCount: 2, physicalMib: 1000, hostSwapMib: 4000 }
    const observed: Observed = {
      config: { ...DEFAULT_CONFIG, safety_reserve_mib: 100, default_vram_overcommit_percent: 50, ...config },
      nodes: ['a', 'b'].map((id) => ({ ...node, id, name: id })),
      now: () => this.now,
      faults: null,
      attemptsOn: (nodeId) => this.#attempts.get(nodeId) ?? new Map(),
      requestOf: (taskId) => this.#requests.get(taskId) ?? null,
      listen: () => {},
    }
    this.checker = new AssertionChecker(observed, {
      always: [],
      eventually: [],
      sometimes: [],
      final: [],
      ...assertions,
    })
  }

  /** The findings, as `assertion: detail`. */
  get found(): string[] {
    return this.checker.violations.map(({ assertion, detail }: Violation) => `${assertion}: ${detail}`)
  }

  after(ms: number): this {
    this.now += ms
    return this
  }

  submit(id: string, request: Partial<ObservedRequest> = {}): this {
    const made: ObservedRequest = {
      vramMib: 400,
      gpuCount: 1,
      gpuMode: 'shared',
      noswap: 0,
      priority: 2,
      groups: [],
      ...request,
    }
    this.#requests.set(id, made)
    return this.tell('task_submitted', id, null, { vram_mib: made.vramMib, gpus: made.gpuCount })
  }

  place(id: string, { node = 'a', gpus = [0], mib = 400, when = 'now' } = {}): this {
    return this.tell('task_placed', id, node, { attempt: 1, gpus, demand_mib: mib, when })
  }

  start(
    id: string,
    {
      node = 'a',
      gpus = [0],
      mib = 400,
      ...attempt
    }: Partial<ObservedAttempt> & { node?: string; mib?: number } = {},
  ): this {
    this.lives(id, node, { gpus, residentMib: mib, ...attempt })
    return this.tell('task_started', id, node, { attempt: 1 })
  }

  /** Submitted, placed and started; idle since then. */
  run(
    id: string,
    request: Partial<ObservedRequest> = {},
    place: { node?: string; gpus?: number[]; mib?: number } = {},
  ): this {
    return this.submit(id, request)
      .place(id, place)
      .start(id, { noswap: request.noswap ?? 0, ...place })
  }

  residency(
    id: string,
    residency: ObservedAttempt['residency'],
    because: string | null = null,
    node = 'a',
  ): this {
    return this.tell('task_residency', id, node, { residency, because })
  }

  decide(
    requester: string,
    victims: readonly Victim[],
    { missing = [0], closed = [] as readonly ('non_p0' | 'p0')[], kind = 'placement' } = {},
  ): this {
    return this.tell('swap_decided', requester, 'a', {
      for: kind,
      victims: victims.map((victim) => ({ gpu: 0, class: 'non_p0', ...victim })),
      closed_rounds: closed.map((victimClass) => ({ gpu: 0, class: victimClass })),
      missing: missing.map((gpu) => ({ gpu, mib: 100 })),
    })
  }

  finish(id: string, node: string | null = 'a'): this {
    if (node !== null) this.#attempts.get(node)?.delete(id)
    return this.tell('task_finished', id, node, { state: 'completed' })
  }

  /** The attempts on a server, whatever the events say. */
  lives(id: string, node: string, attempt: Partial<ObservedAttempt> = {}): this {
    const before = this.#attempts.get(node)?.get(id)
    const fresh = {
      attempt: 1,
      gpus: [0],
      residentMib: 400,
      noswap: 0,
      residency: 'resident',
      wantsGpu: false,
      lastUseAt: this.now,
    } as const
    this.#attempts.get(node)?.set(id, { ...fresh, ...before, ...attempt })
    return this
  }

  change(id: string, request: Partial<ObservedRequest>): this {
    this.#requests.set(id, { ...(this.#requests.get(id) as ObservedRequest), ...request })
    return this.tell('task_updated', id, null, {})
  }

  tell(kind: EventKind, taskId: string | null, nodeId: string | null, data: EventData = {}): this {
    const event: Event = {
      seq: ++this.#seq,
      at: this.now,
      kind,
      taskId,
      nodeId,
      causedBy: null,
      by: null,
      data,
    }
    this.checker.afterEvents([event])
    this.checker.afterStep()
    return this
  }

  /** Ends the run. */
  end(metrics: Partial<Metrics> = {}): this {
    this.checker.finish({ ...NO_METRICS, ...metrics })
    return this
  }
}

export function forged(name: AlwaysName, config: Partial<ConfigFields> = {}): ForgedRun {
  return new ForgedRun({ always: [name] }, config)
}
