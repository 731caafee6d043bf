/** `headroom sim run FILE`. */
import type { RunOptions } from '../../simulator/run/run.ts'
import type { Override } from '../../simulator/document/override.ts'
import { PERCENTAGE } from '../../simulator/experiment/sweep/sweep-grid.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { readRunInput } from '../../services/runs/run-input.ts'
import { runAndReport } from './run-report.ts'
import type { OutputOptions } from './run-report.ts'

export interface SimRunOptions extends OutputOptions {
  readonly seed?: number
  readonly until?: number
  readonly overcommit?: number
  readonly set?: readonly Override[]
  readonly wire?: boolean
  readonly enactHeartbeats?: boolean
}

export async function simRun(file: string, options: SimRunOptions): Promise<number> {
  if (
    options.overcommit !== undefined &&
    options.set?.some(({ field }) => field === `config.${PERCENTAGE}`) === true
  )
    throw new UsageError(`--overcommit and --set config.${PERCENTAGE} set the same field: omit one of them`)
  const { scenario, identity, expectedTasks } = await readRunInput(file, options.set)
  const runOptions: RunOptions = {
    ...(options.seed === undefined ? {} : { seed: options.seed }),
    ...(options.until === undefined ? {} : { untilMs: options.until }),
    ...(options.overcommit === undefined ? {} : { overcommitPercent: options.overcommit }),
    busMode: options.wire === true ? 'wire' : 'reference',
    areHeartbeatsEnacted: options.enactHeartbeats === true,
    expectedTasks,
    ...(scenario.operator.length === 0
      ? {}
      : { openOperatorClient: (await import('../../services/runs/operator-client.ts')).openOperatorClient }),
  }
  return runAndReport(scenario.name, scenario, identity, runOptions, options)
}
