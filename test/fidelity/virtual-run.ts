/** A scenario in virtual time, by `headroom sim run`, with process starts as long as real ones. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { execFile } from 'node:child_process'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { RunResult } from '../../simulator/results/result.ts'
import type { SwapProfile } from '../../simulator/scenario/swap-profiles.ts'
import { idOfNode } from '../../simulator/scenario/node-id.ts'
import { headroom } from '../support/live-cluster.ts'
import { swapEntry } from './real-run.ts'
import { decisionsIn, type Happened, type Outcome } from './outcome.ts'
import { wakesOf } from './wakes.ts'

/**
 * @param startMs replaces `start_ms` of the fleet's only entry
 * @param swap replaces the numbers of its swap speed
 */
export async function runVirtually(
  file: string,
  folder: string,
  startMs: DurationMs = 0,
  swap?: SwapProfile,
): Promise<Outcome> {
  const [node = '', ...args] = headroom(
    'sim',
    'run',
    file,
    '--out',
    folder,
    '--set',
    `fleet.0.gpu.start_ms=${startMs}`,
    ...Object.entries(swap === undefined ? {} : swapEntry(swap)).flatMap(([key, value]) => [
      '--set',
      `fleet.0.gpu.swap.${key}=${value}`,
    ]),
  )
  await promisify(execFile)(node, args)
  const { metrics } = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) as RunResult
  const events = readFileSync(join(folder, 'journal.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Happened)
  const { scenario } = loadScenario(file)
  const names = new Map(scenario.nodes.map((each) => [idOfNode(each), each.name]))
  return {
    ...decisionsIn(events, scenario.clock.startMs, (id) => names.get(id) ?? id),
    queueWaitS: metrics.queue_wait_s?.mean ?? NaN,
    starvationPercent: metrics.starvation_percent?.total ?? NaN,
    utilizationPercent: metrics.utilization_percent ?? NaN,
    wakesS: wakesOf(scenario, events, (id) => id),
  }
}
