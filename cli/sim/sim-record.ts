/** `headroom sim record`: a time range of a controller's recording as a scenario file. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { RECORDING_FOLDER } from '../../controller/adapters/recording/format.ts'
import { newReadNotes, readRecording } from '../../controller/adapters/recording/read-recording.ts'
import { recordScenario } from '../../simulator/experiment/recording/record-scenario.ts'
import { ReplayDivergence } from '../../simulator/experiment/recording/replayed-ports.ts'
import { CommandFailure, EXIT_DIGEST_MISMATCH, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { checkPlace, writeOutput } from '../../services/output-file.ts'
import { plural } from '../output/figures.ts'

export interface SimRecordOptions {
  readonly data: string
  readonly from?: string
  readonly to?: string
  readonly name: string
  readonly out?: string
}

export async function simRecord({ data, name, out, ...range }: SimRecordOptions): Promise<number> {
  const [from, to] = [instantOf('--from', range.from), instantOf('--to', range.to)]
  if (from !== null && to !== null && to <= from) throw new UsageError('--to must be later than --from')
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(name))
    throw new UsageError('--name may contain only lowercase letters, digits, dots, - and _')
  if (out !== undefined) checkPlace(`--out ${out}`, out)
  const recordingFolder = join(data, RECORDING_FOLDER)
  const notes = newReadNotes()
  const recorded = await recordScenario(
    readRecording(existsSync(recordingFolder) ? recordingFolder : data, notes),
    {
      from,
      to,
      name,
    },
  ).catch((error: unknown) => {
    if (!(error instanceof ReplayDivergence)) throw error
    throw new CommandFailure(
      `the decisions of this version differ from the recorded ones (${error.message}); to see where, run ` +
        '`headroom sim redecide`',
      EXIT_DIGEST_MISMATCH,
    )
  })
  for (const note of notes.notes) process.stderr.write(`note: ${note}\n`)
  if (recorded === null) throw new UsageError('no node is up in that range of the recording')
  const { text, nodes, tasks, operator, faults, leftOut } = recorded
  if (out === undefined) process.stdout.write(text)
  else writeOutput(`--out ${out}`, out, text)
  const times = [recorded.from, recorded.to].map((at) => new Date(at).toISOString()).join(' to ')
  const missing = [
    ...(leftOut.nodes > 0 ? [`${plural(leftOut.nodes, 'node')} not up`] : []),
    ...(leftOut.tasks > 0 ? [`${plural(leftOut.tasks, 'task')} on these nodes or stopping`] : []),
  ]
  process.stderr.write(
    `${times}: ${plural(nodes, 'node')}, ${plural(tasks, 'task')}, ` +
      `${plural(operator, 'operator action')}, ${plural(faults, 'fault')}` +
      `${missing.length === 0 ? '' : `; left out: ${missing.join(', ')}`}\n`,
  )
  return EXIT_OK
}

function instantOf(option: string, text: string | undefined): number | null {
  if (text === undefined) return null
  const at = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?Z$/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(at))
    throw new UsageError(
      `${option} is ${JSON.stringify(text.slice(0, 40))}; it must be a time in UTC such as ` +
        '2026-05-04T08:00:00Z',
    )
  return at
}
