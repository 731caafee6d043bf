/**
 * An advice as text: one sentence for the recommendation, one for each caveat, and a table of the verdicts.
 */
import type { Advice, Candidate, Caveat, Tie } from '../experiment/advisor/advisor.ts'
import type { Change } from '../experiment/advisor/change.ts'
import { titleOf, unitOf } from '../experiment/advisor/objective.ts'
import type { ObjectiveFigure } from '../experiment/advisor/objective.ts'
import type { PairedDifference } from '../experiment/advisor/paired-difference.ts'
import { shownSeconds, tableOf } from './plain-text.ts'

/** The recommendation, or the reason for having none, in one sentence. */
export function adviceSentence(advice: Advice): string {
  return `${exclusiveSentence(advice)}${recommendation(advice)}`
}

function recommendation(advice: Advice): string {
  const { recommended_percent: percent, utilization_percent: utilization, candidates, caveats } = advice
  const unplaceable = caveats.find((caveat) => caveat.kind === 'fit_nowhere')
  if (unplaceable !== undefined)
    return (
      `No recommendation: ${unplaceable.tasks} of ${unplaceable.submitted} tasks do not fit on ` +
      'any node that is up, even if the node is empty. Add nodes or GPUs that are large enough, or ' +
      'leave these tasks out.'
    )
  const chosen = candidates.find(({ overcommit_percent }) => overcommit_percent === percent)
  if (chosen === undefined || utilization === null)
    return `None of the overcommit percentages tried meets ${wished(advice.objectives)}.`
  const band =
    `${points(utilization.mean)}% utilization (p10–p90 over ${seeds(chosen.seeds)}: ` +
    `${points(utilization.p10)}–${points(utilization.p90)}%)`
  const choice =
    `the highest utilization of all percentages that meet ${wished(advice.objectives)}: ` +
    `${band}, with ${measured(chosen)}`
  if (advice.gain === null || advice.changes.length === 0) return `Overcommit ${percent}%: ${choice}.`
  return (
    `Overcommit ${percent}% instead of ${advice.gain.over_percent}%: ` +
    `${advice.changes.map(changeText).join(', ')}. It has ${choice}.`
  )
}

/** The second opinion and the caveats, one sentence each. */
export function adviceNotes(advice: Advice): string[] {
  const caveats = advice.caveats.filter(({ kind }) => kind !== 'mostly_exclusive')
  return [kneeSentence(advice), ...caveats.map((caveat) => caveatSentence(caveat, advice))]
}

/** One line per percentage: the verdict on each objective, and the utilization. */
export function adviceTable({ candidates, objectives, recommended_percent, knee_percent }: Advice): string {
  const head = ['overcommit', 'utilization', 'p10', 'p90', ...objectives.map((each) => `p95 of ${each}`), '']
  const rows = candidates.map((candidate) => [
    `${candidate.overcommit_percent}%`,
    ...[
      candidate.utilization_percent?.mean,
      candidate.utilization_percent?.p10,
      candidate.utilization_percent?.p90,
    ].map((value) => (value === undefined ? '–' : `${points(value)}%`)),
    ...candidate.objectives.map(
      ({ objective, p95, keeps }) => `${shownFigure(figureOf(objective), p95)} ${keeps ? 'kept' : 'broken'}`,
    ),
    [
      ...(candidate.overcommit_percent === recommended_percent ? ['← recommended'] : []),
      ...(candidate.overcommit_percent === knee_percent ? ['knee'] : []),
    ].join(', '),
  ])
  return tableOf([head, ...rows])
}

/** A metric of an objective with its unit: `12.3%`, `10.0 min`. */
export function shownFigure(figure: ObjectiveFigure, value: number | null): string {
  if (value === null) return '–'
  switch (unitOf(figure)) {
    case 'percent':
      return `${points(value)}%`
    case 'seconds':
      return shownSeconds(value)
    case 'number':
      return value.toFixed(2)
  }
}

/** The advice on several combinations, none of which has a recommended percentage. */
export function noneSentence(combinations: readonly Pick<Advice, 'caveats' | 'objectives'>[]): string {
  const blocked = combinations.filter(({ caveats }) =>
    caveats.some(({ kind }) => kind === 'fit_nowhere'),
  ).length
  if (blocked > 0)
    return (
      `No recommendation: in ${blocked} of the ${combinations.length} combinations, some tasks do not ` +
      'fit on any node.'
    )
  const objectives = combinations[0]?.objectives ?? []
  return (
    `None of the ${combinations.length} combinations meets ${objectives.join(' and ')} at ` +
    'any percentage.'
  )
}

export function figureOf(objective: string): ObjectiveFigure {
  return objective.slice(0, objective.indexOf('<=')) as ObjectiveFigure
}

function wished(objectives: readonly string[]): string {
  return `${objectives.join(' and ')} in 95% of the seeds`
}

function measured({ objectives }: Candidate): string {
  return objectives
    .map(
      ({ objective, p95 }) =>
        `${titleOf(figureOf(objective))} of ${shownFigure(figureOf(objective), p95)} at the 95th percentile`,
    )
    .join(' and ')
}

/** `queue wait p95 falls from 6.6 h to 11.2 min`, `utilization stays at 31.5% (+0.04 ± 0.04 points)`. */
function changeText({ figure, before, after, difference, verdict }: Change): string {
  const show = (value: number): string =>
    figure === 'queue_wait.p95' ? shownSeconds(value) : `${points(value)}%`
  const title = figure === 'utilization' ? 'utilization' : titleOf(figure)
  if (verdict === 'same') {
    const detail =
      figure === 'utilization'
        ? signed(difference)
        : show(before) === show(after)
          ? null
          : `${show(before)} before`
    return `${title} stays at ${show(after)}${detail === null ? '' : ` (${detail})`}`
  }
  return `${title} ${after < before ? 'falls' : 'rises'} from ${show(before)} to ${show(after)}`
}

/** Comes first, because it changes the meaning of the rest. */
function exclusiveSentence(advice: Advice): string {
  const caveat = advice.caveats.find(({ kind }) => kind === 'mostly_exclusive')
  return caveat === undefined ? '' : `${caveatSentence(caveat, advice)} `
}

function kneeSentence({ knee_percent, recommended_percent }: Advice): string {
  if (knee_percent === null)
    return 'Second opinion: mean utilization has no knee (Kneedle) among the percentages tried.'
  const agrees = knee_percent === recommended_percent ? ', the same' : ''
  return `Second opinion: the knee of mean utilization (Kneedle) is at ${knee_percent}%${agrees}.`
}

function caveatSentence(caveat: Caveat, advice: Advice): string {
  switch (caveat.kind) {
    case 'mostly_exclusive':
      return (
        `${points(caveat.exclusive_percent)}% of the GPU-hours belong to tasks that take whole ` +
        'GPUs, and overcommit has no effect on them.'
      )
    case 'none_keeps': {
      const figure = figureOf(caveat.objective)
      return (
        `The closest percentage is ${caveat.nearest_percent}%: its ${titleOf(figure)} is ` +
        `${shownFigure(figure, caveat.p95)} at the 95th percentile (objective: ${caveat.objective}). ` +
        'Add GPUs, reduce the workload, or relax the objectives.'
      )
    }
    case 'too_few_seeds':
      return fewSeedsSentence(caveat.seeds, caveat.ties, advice)
    case 'no_idleness':
      return (
        `No task that may be swapped is ever idle for ${shownSeconds(caveat.idle_period_s)} ` +
        `(GPUs are without work ${points(caveat.idle_percent)}% of the time). Nothing can be ` +
        'swapped out, so overcommit cannot help.'
      )
    case 'never_swapped':
      return (
        'Nothing was swapped out at any percentage: either no task is idle for long, or no task ' +
        'waited for the VRAM of an idle one.'
      )
    case 'seeds_alike':
      return (
        `All ${caveat.seeds} seeds gave the same figures: nothing in this scenario is random, so ` +
        `percentiles over seeds have no meaning. A trace item with \`activity\` or \`sample\` ` +
        'adds randomness.'
      )
    case 'no_effect':
      return (
        'All percentages have the same figures: no task waits for VRAM, or every node has its ' +
        'own overcommit percentage.'
      )
    case 'highest_tried':
      return (
        `${caveat.overcommit_percent}% is the highest percentage that was tried: a higher one ` +
        'may be better.'
      )
    case 'fit_nowhere':
      return (
        `Starvation and waits do not include the ${caveat.tasks} tasks that do not fit on any node, so ` +
        'the figures of a cluster that is too small look good.'
      )
    case 'uneven_seeds':
      return (
        'The percentages were not all run with the same seeds, so their means cannot be compared ' +
        'seed by seed.'
      )
  }
}

function fewSeedsSentence(seedCount: number, ties: readonly Tie[], { recommended_percent }: Advice): string {
  if (seedCount < 2)
    return 'One seed does not show the effect of chance. Run at least two seeds, preferably ten.'
  const each = ties.map(
    ({ overcommit_percent, difference }) =>
      `${overcommit_percent}% (${signed(difference)}${needed(difference)})`,
  )
  return (
    `${seeds(seedCount)} are too few to distinguish the utilization at ${recommended_percent}% ` +
    `from that at ${each.join(', ')}.`
  )
}

function needed({ pairs_needed }: PairedDifference): string {
  return pairs_needed === null ? '' : `, about ${pairs_needed} seeds needed`
}

/** `+1.20 ± 0.40 points`. */
function signed({ mean, half_width }: PairedDifference): string {
  const sign = mean < 0 ? '−' : '+'
  const width = half_width === null ? '' : ` ± ${half_width.toFixed(2)}`
  return `${sign}${Math.abs(mean).toFixed(2)}${width} points`
}

function seeds(count: number): string {
  return count === 1 ? '1 seed' : `${count} seeds`
}

function points(percent: number): string {
  return percent.toFixed(1)
}
