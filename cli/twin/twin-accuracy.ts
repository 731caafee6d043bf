/** `headroom twin`: the accuracy of the twin's forecasts. */
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import type { Twin } from '../../clients/typescript/client.ts'
import { CommandFailure, EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { cannotBeWritten, checkPlace, placeOf } from '../../services/output-file.ts'
import { openClient, type CommandOptions, type ServerOption } from '../command/session.ts'
import { plural } from '../output/figures.ts'
import { printOne, type Field } from '../output/table.ts'

const METRICS = ['queue_wait_s', 'starvation_percent', 'utilization_percent', 'swap_outs_per_hour'] as const
/** Maximum intervals shown; `-o json` has all. */
const SHOWN = 6

export async function twinState({ output, ...server }: CommandOptions): Promise<number> {
  const twin = await openClient(server).twin()
  await printOne(twin, fieldsOf(twin), output)
  return EXIT_OK
}

function fieldsOf({
  state,
  scores,
  threshold,
  unavailable_because: because,
  history,
  speeds,
}: Twin): readonly Field[] {
  const fields: Field[] = [['twin', `${state}; a score above ${threshold} means drift`]]
  for (const metric of METRICS) fields.push([metric, [scoreOf(scores[metric]), ...latestOf(history, metric)]])
  if (because !== null) fields.push(['not forecast', because])
  fields.push([
    'learned speeds',
    speeds.length === 0 ? 'none: no swap or start has been observed yet' : linesOf(speeds),
  ])
  return fields
}

function linesOf(speeds: Twin['speeds']): string[] {
  const lines = speeds
    .slice(0, SHOWN)
    .flatMap(({ node_id, methods, starts }) => [
      ...methods.map(
        ({ method, out, in: back }) => `${node_id}: ${method} ${copies('out', out)}, ${copies('in', back)}`,
      ),
      ...(starts.observed > 0
        ? [`${node_id}: a start takes ${starts.ms} ms (${starts.observed} observed)`]
        : []),
    ])
  const more = speeds.length - SHOWN
  return more > 0 ? [...lines, `and ${plural(more, 'more node')}: use -o json to list all`] : lines
}

type Copies = Twin['speeds'][number]['methods'][number]['out']

/** The error is of the fit, and in brackets of the profile that it replaces. */
function copies(
  way: string,
  { fixed_ms, mib_per_s, observed, error_percent, profile_error_percent }: Copies,
) {
  if (error_percent === null) return `${way} not observed`
  return (
    `${way} ${mib_per_s} MiB/s + ${fixed_ms} ms from ${observed} copies, error ` +
    `${error_percent.toFixed(1)}% (${(profile_error_percent ?? 0).toFixed(1)}% without learning)`
  )
}

function scoreOf(score: number | null): string {
  return score === null ? 'nothing compared yet' : `score ${score.toFixed(2)}`
}

function latestOf(history: Twin['history'], metric: (typeof METRICS)[number]): string[] {
  return history.slice(-SHOWN).flatMap(({ to, ...entry }) => {
    const point = entry[metric]
    if (point === null) return []
    return [
      `${to}: actual ${point.actual.toFixed(1)}, predicted ${point.p50.toFixed(1)} ` +
        `(${point.p10.toFixed(1)} to ${point.p90.toFixed(1)})`,
    ]
  })
}

export interface SnapshotOptions extends ServerOption {
  readonly out?: string
}

export async function snapshot({ out, ...server }: SnapshotOptions): Promise<number> {
  const option = `--out ${out ?? ''}`
  if (out !== undefined) checkPlace(option, out)
  const answer = await openClient(server).snapshot()
  const body = Readable.fromWeb(answer.body as ReadableStream)
  if (out === undefined) {
    await pipeline(body, process.stdout, { end: false })
    return EXIT_OK
  }
  const { path, draft } = placeOf(out)
  try {
    await pipeline(body, createWriteStream(draft))
    if (draft !== path) await rename(draft, path)
  } catch (error) {
    if (draft !== path) await rm(draft, { force: true })
    if ('syscall' in (error as Error)) cannotBeWritten(option, error)
    throw new CommandFailure(
      `${out} was not written: the response was incomplete: ${(error as Error).message}`,
      EXIT_FAILED,
    )
  }
  process.stderr.write(`saved ${out}; to simulate it, run: headroom sim run ${out}\n`)
  return EXIT_OK
}
