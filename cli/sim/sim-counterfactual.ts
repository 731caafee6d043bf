/** `headroom sim counterfactual SCENARIO`: the outcome of a swap decision with another victim. */
import {
  counterfactual,
  CounterfactualFault,
  swapChoices,
} from '../../simulator/experiment/counterfactual.ts'
import type { Counterfactual, InvolvedTask, SwapChoice } from '../../simulator/experiment/counterfactual.ts'
import type { RunOptions } from '../../simulator/run/run.ts'
import { formatDuration } from '../../simulator/document/quantity.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { readRunInput } from '../../services/runs/run-input.ts'

export interface CounterfactualOptions {
  readonly decision?: number
  readonly victim?: string
  readonly seed?: number
  readonly json?: boolean
}

const MAX_LISTED = 200
const WIDTHS = [28, 14, 14, 12] as const

export async function simCounterfactual(
  file: string,
  { decision, victim, seed, json = false }: CounterfactualOptions,
): Promise<number> {
  if ((decision === undefined) !== (victim === undefined))
    throw new UsageError(
      '--decision and --victim must be used together; without them, the decisions are listed',
    )
  const { scenario, identity } = await readRunInput(file)
  if (scenario.faults.length > 0)
    throw new UsageError('counterfactuals of scenarios with faults are not supported: remove the faults')
  const options: RunOptions = {
    ...(seed === undefined ? {} : { seed }),
    ...(scenario.operator.length === 0
      ? {}
      : { openOperatorClient: (await import('../../services/runs/operator-client.ts')).openOperatorClient }),
  }
  if (decision === undefined || victim === undefined) {
    const choices = await swapChoices(scenario, identity, options)
    process.stdout.write(json ? `${JSON.stringify(choices, null, 2)}\n` : listed(choices))
    return EXIT_OK
  }
  try {
    const found = await counterfactual(scenario, identity, { decision, victim }, options)
    process.stdout.write(json ? `${JSON.stringify(found, null, 2)}\n` : resultText(found))
  } catch (fault) {
    if (!(fault instanceof CounterfactualFault)) throw fault
    throw new UsageError(fault.message, { cause: fault })
  }
  return EXIT_OK
}

function listed(choices: readonly SwapChoice[]): string {
  const lines = choices
    .slice(0, MAX_LISTED)
    .map(({ decision, atMs, taskId, node, victimIds, candidateIds }) => {
      const others = candidateIds.filter((id) => !victimIds.includes(id))
      const could = others.length === 0 ? 'no alternatives' : `alternatives: ${others.join(', ')}`
      return (
        `${decision}  at ${formatDuration(atMs)}  ${taskId} on ${node}: swapped out ` +
        `${victimIds.join(', ')}; ${could}\n`
      )
    })
  if (choices.length > MAX_LISTED)
    lines.push(`and ${choices.length - MAX_LISTED} more; use --json to list all\n`)
  return lines.length === 0 ? 'The run has no swap decisions.\n' : lines.join('')
}

function resultText({ decision, otherVictimIds, cluster, tasks, tasksChanged }: Counterfactual): string {
  const head =
    `Decision ${decision.decision} at ${formatDuration(decision.atMs)}, for ${decision.taskId} on ` +
    `${decision.node}: swapped out ${decision.victimIds.join(', ')}; instead: ` +
    `${otherVictimIds.join(', ')}.\n`
  const rows = [
    row('', 'original', 'instead', 'difference'),
    row('cluster', '', '', ''),
    ...figureRows(cluster.before, cluster.after),
    ...tasks.flatMap((task) => [
      row(`${task.id} (${ROLES[task.role]})`, '', '', ''),
      ...figureRows(task.before, task.after),
    ]),
  ]
  return (
    `${head}${rows.join('')}${tasksChanged} ${tasksChanged === 1 ? 'task ends' : 'tasks end'} at a ` +
    `different time or with a different result.\n`
  )
}

const ROLES: Readonly<Record<InvolvedTask['role'], string>> = {
  needs: 'needed the VRAM',
  left: 'swapped out',
  leaves_instead: 'swapped out instead',
}

function figureRows<T extends object>(before: T | null, after: T | null): string[] {
  return Object.keys(before ?? after ?? {}).map((name) => {
    const [a, b] = [before?.[name as keyof T] ?? null, after?.[name as keyof T] ?? null] as (number | null)[]
    const difference =
      a === null || b === null || a === undefined || b === undefined ? '–' : shown(b - a, true)
    return row(`  ${name}`, shown(a ?? null), shown(b ?? null), difference)
  })
}

function shown(value: number | null, isSigned = false): string {
  if (value === null) return '–'
  const text = Number.isInteger(value) ? String(value) : value.toFixed(2)
  return isSigned && value > 0 ? `+${text}` : text
}

function row(...cells: readonly [string, string, string, string]): string {
  return `${cells
    .map((cell, i) => (i === 0 ? cell.padEnd(WIDTHS[0]) : cell.padStart(WIDTHS[i] as number)))
    .join(' ')
    .trimEnd()}\n`
}
