/** `headroom sim replay TRACE`. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { replayPlan, uniformFleet } from '../../simulator/replay.ts'
import type { ReplayRequest } from '../../simulator/replay.ts'
import type { FleetEntry } from '../../simulator/trace/openb-fleet.ts'
import { fingerprintTrace } from '../../simulator/trace/fingerprint-file.ts'
import { TraceError } from '../../simulator/trace/trace-error.ts'
import type { TraceHeader } from '../../simulator/trace/trace-format.ts'
import { openTrace } from '../../simulator/trace/trace-file-reader.ts'
import { UsageError } from '../exit-codes.ts'
import { packageVersion } from '../package-info.ts'
import { runAndReport } from './run-report.ts'
import type { OutputOptions } from './run-report.ts'

export interface SimReplayOptions extends OutputOptions {
  readonly nodes?: number
  readonly gpusPerNode?: number
  readonly vramMib?: number
  readonly nodesFile?: string
  readonly vramMap?: string
  readonly overcommit: number
  readonly strategy: ReplayRequest['strategy']
  readonly swap: ReplayRequest['swap']
  readonly safetyReserveMib?: number
  readonly idleSwapOut?: number
  readonly seed: number
  readonly timeScale: number
  readonly sample: number
  readonly maxGpus?: number
  readonly until?: number
  readonly wire?: boolean
}

export async function simReplay(file: string, options: SimReplayOptions): Promise<number> {
  // Once for what identifies it, and once for the run.
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw new UsageError(`${file}: is no file that can be read twice; write it to one first`)
  const header = await headerOf(file)
  const { sha256, tasks } = await fingerprintTrace(file)
  const plan = replayPlan({
    traceFile: resolve(file),
    fleet: await fleetOf(options),
    swap: options.swap,
    overcommitPercent: options.overcommit,
    strategy: options.strategy,
    reserveMib: options.safetyReserveMib ?? null,
    idleSwapOutSeconds: options.idleSwapOut ?? null,
    seed: options.seed,
    timeScale: options.timeScale,
    sample: options.sample,
    maxGpus: options.maxGpus ?? null,
    untilMs: options.until ?? null,
  })
  for (const note of notesOn(header, options)) process.stderr.write(`${note}\n`)
  const identity = { scenarioSha256: null, traceSha256: sha256, version: packageVersion() }
  const runOptions = {
    expectedTasks: tasks * options.sample,
    busMode: options.wire === true ? 'wire' : 'reference',
  } as const
  return runAndReport(header.trace, plan, identity, runOptions, options)
}

/** Throws TraceError; for a file that is no trace at all, with the way to make one of it. */
async function headerOf(file: string): Promise<TraceHeader> {
  try {
    const trace = await openTrace(file)
    trace.close()
    return trace.header
  } catch (error) {
    if (!(error instanceof TraceError) || error.line !== 1) throw error
    throw new UsageError(
      `${error.message}. A raw file has to be imported first: headroom trace import FORMAT ${file} -o OUT.trace.jsonl`,
      {
        cause: error,
      },
    )
  }
}

async function fleetOf({
  nodes,
  gpusPerNode,
  vramMib,
  nodesFile,
  vramMap,
}: SimReplayOptions): Promise<FleetEntry[]> {
  if (nodesFile !== undefined) {
    if (nodes !== undefined || gpusPerNode !== undefined || vramMib !== undefined) {
      throw new UsageError(
        '--nodes-file already says what the fleet is: leave out --nodes, --gpus-per-node and --vram-mib',
      )
    }
    const [{ openbFleet }, { parseVramMap }] = await Promise.all([
      import('../../simulator/trace/openb-fleet.ts'),
      import('../../simulator/trace/vram-map.ts'),
    ])
    return openbFleet(nodesFile, vramMap === undefined ? undefined : parseVramMap(vramMap))
  }
  if (vramMap !== undefined) throw new UsageError('--vram-map goes with --nodes-file')
  const missing = [
    nodes === undefined && '--nodes',
    gpusPerNode === undefined && '--gpus-per-node',
    vramMib === undefined && '--vram-mib',
  ]
  const names = missing.filter((name) => name !== false)
  if (nodes === undefined || gpusPerNode === undefined || vramMib === undefined) {
    throw new UsageError(`the fleet is not known: add ${names.join(', ')}, or --nodes-file`)
  }
  return uniformFleet(nodes, gpusPerNode, vramMib)
}

/** What the reader of the figures has to know of the trace. */
function notesOn({ importer }: TraceHeader, { overcommit }: SimReplayOptions): string[] {
  const notes: string[] = []
  const synthetic = importer?.synthetic ?? []
  if (synthetic.length > 0) notes.push(`note: made up by the importer, not measured: ${synthetic.join(', ')}`)
  if (overcommit > 0 && importer?.options['activity_model'] === 'always-busy') {
    notes.push(
      'note: the tasks of this trace never idle, so nothing is ever swapped out; import it with --activity-model serving',
    )
  }
  return notes
}
