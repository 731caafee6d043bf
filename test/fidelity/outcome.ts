/**
 * The outcome of a run of a scenario in either kind of time: the decisions in order, and the compared
 * figures.
 */

export interface Outcome {
  /** `what task on node, GPUs: victims`, in the order of the decisions. */
  readonly decisions: readonly string[]
  /** Instants of these decisions, ms since the start of the run. */
  readonly decidedAtMs: readonly number[]
  /** Mean over the tasks, seconds. */
  readonly queueWaitS: number
  readonly starvationPercent: number
  readonly utilizationPercent: number
  /** Seconds, rising. */
  readonly wakesS: readonly number[]
}

/** As in the journal, and as in /events. */
export interface Happened {
  readonly at: number
  readonly kind: string
  readonly task: string | null
  readonly node: string | null
  readonly data: Readonly<Record<string, unknown>>
}

const WHAT: Readonly<Record<string, string>> = {
  task_placed: 'place',
  swap_decided: 'swap out for',
  swap_in_decided: 'swap in',
  growth_granted: 'grow',
  growth_refused: 'refuse growth of',
}

/** Kind, task, node, GPU, victims. */
export function decisionsIn(
  events: readonly Happened[],
  startedAt: number,
  nameOf: (id: string) => string,
): Pick<Outcome, 'decisions' | 'decidedAtMs'> {
  const decided = events.filter(({ kind }) => kind in WHAT)
  const gpusOf = ({ data }: Happened): string => {
    const gpus =
      data['gpus'] ??
      (data['missing'] as readonly { readonly gpu: number }[] | undefined)?.map(({ gpu }) => gpu) ??
      []
    return (gpus as readonly number[]).join('+')
  }
  const victimsOf = ({ data }: Happened): string =>
    ((data['victims'] ?? []) as readonly { readonly id: string; readonly gpu: number }[])
      .map(({ id, gpu }) => ` ${nameOf(id)}/${gpu}`)
      .join('')
  return {
    decisions: decided.map((each) => {
      const [what, task, node] = [WHAT[each.kind], nameOf(each.task ?? ''), nameOf(each.node ?? '')]
      return `${what} ${task} on ${node}/${gpusOf(each)}${victimsOf(each)}`
    }),
    decidedAtMs: decided.map(({ at }) => at - startedAt),
  }
}

export interface Compared {
  readonly scenario: string
  readonly decisions: number
  /** Null if all are equal, otherwise the first difference. */
  readonly difference: string | null
  /** The shortest time between two decisions of the virtual run, ms. */
  readonly closestMs: number
  readonly figures: readonly {
    readonly name: string
    readonly virtual: number
    readonly real: number
    readonly differencePercent: number
  }[]
}

export function compare(scenario: string, virtual: Outcome, real: Outcome): Compared {
  const length = Math.max(virtual.decisions.length, real.decisions.length)
  const at = Array.from({ length }, (_, i) => i).find((i) => virtual.decisions[i] !== real.decisions[i])
  const difference =
    at === undefined
      ? null
      : `decision ${at + 1}: virtual ${virtual.decisions[at] ?? 'none'}, real ${real.decisions[at] ?? 'none'}`
  const figures = (['queueWaitS', 'starvationPercent', 'utilizationPercent'] as const).map((name) => ({
    name,
    virtual: virtual[name],
    real: real[name],
    differencePercent:
      virtual[name] === real[name] ? 0 : (100 * (real[name] - virtual[name])) / virtual[name],
  }))
  const gaps = virtual.decidedAtMs.slice(1).map((ms, i) => ms - (virtual.decidedAtMs[i] as number))
  return { scenario, decisions: virtual.decisions.length, difference, closestMs: Math.min(...gaps), figures }
}
