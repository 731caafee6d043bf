/** `headroom sim redecide RECORDING`: replays the recorded inputs with this version. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { RECORDING_FOLDER } from '../../controller/adapters/recording/format.ts'
import {
  newReadNotes,
  readRecording,
  type ReadNotes,
} from '../../controller/adapters/recording/read-recording.ts'
import type { Decision } from '../../controller/model/decision.ts'
import { EXIT_DIGEST_MISMATCH, EXIT_OK } from '../../services/exit-codes.ts'
import { redecide, type Difference, type Redecided } from '../../simulator/experiment/recording/redecide.ts'

export interface SimRedecideOptions {
  readonly json?: boolean
}

export async function simRedecide(path: string, { json }: SimRedecideOptions): Promise<number> {
  const notes = newReadNotes()
  const siblingNotes = join(path, RECORDING_FOLDER)
  const again = await redecide(readRecording(existsSync(siblingNotes) ? siblingNotes : path, notes))
  for (const note of notes.notes) process.stderr.write(`note: ${note}\n`)
  process.stdout.write(
    json === true ? `${JSON.stringify({ ...again, ...notes }, null, 2)}\n` : textOf(again, notes),
  )
  return again.difference === null ? EXIT_OK : EXIT_DIGEST_MISMATCH
}

function textOf(again: Redecided, { files, bytes }: ReadNotes): string {
  const { starts, inputs, decisions, events, firstAt, lastAt, difference } = again
  const from = firstAt === null || lastAt === null ? '' : ` from ${instant(firstAt)} to ${instant(lastAt)}`
  const read =
    `${files} files, ${(bytes / 1_048_576).toFixed(1)} MiB: ${inputs} inputs of ${starts} controller ` +
    `starts${from}\n`
  const equal = `${decisions} decisions and ${events} events`
  return difference === null
    ? `${read}identical: ${equal}\n`
    : `${read}${equal} are identical, then:\n${differenceText(difference)}`
}

function differenceText(difference: Difference): string {
  const where = `at ${instant(difference.at)}, input ${difference.input}`
  switch (difference.what) {
    case 'decision': {
      const { recorded, redecided } = difference
      return (
        `DIFFERENT decision ${where}\n  recorded:  ${decisionText(recorded)}\n  this code: ` +
        `${decisionText(redecided)}\n`
      )
    }
    case 'event': {
      const { recorded, redecided } = difference
      return (
        `DIFFERENT event ${where}\n  recorded:  ${eventText(recorded)}\n  this code: ` +
        `${eventText(redecided)}\n`
      )
    }
    case 'course':
      return `DIFFERENT course ${where}: ${difference.detail}\n`
  }
}

function eventText(event: object | null): string {
  return event === null ? 'nothing' : JSON.stringify(event)
}

function instant(at: number): string {
  return new Date(at).toISOString()
}

const INDENT = '\n             '

/** Formats a decision and its inputs: kind, task, place, rule, and the candidates with their keys. */
export function decisionText(decision: Decision | null): string {
  if (decision === null) return 'nothing'
  const {
    number,
    kind,
    rule,
    taskId,
    taskName,
    nodeName,
    gpus,
    sentence,
    victimIds,
    gpusConsidered,
    candidates,
    missing,
  } = decision
  const lines = [
    `${kind} ${number} of task ${taskName} (${taskId}) on ${nodeName}, GPU ${gpus.join(', ')}, rule ` + rule,
    sentence,
    ...(victimIds.length === 0 ? [] : [`swapped out: ${victimIds.join(', ')}`]),
    ...(missing.length === 0
      ? []
      : [`missing: ${missing.map(({ gpu, mib }) => `${mib} MiB on GPU ${gpu}`).join(', ')}`]),
    ...gpusConsidered.map(
      (one) =>
        `${one.isChosen ? 'chosen' : 'not chosen'}: ${one.nodeName} GPU ${one.gpu}, keys ${one.key1} and ` +
        `${one.key2}`,
    ),
    ...candidates.map((one) => {
      const last =
        one.lastSwapOut === null ? 'never swapped out' : `last swapped out by decision ${one.lastSwapOut}`
      return (
        `${one.chosenBy === null ? 'not chosen' : 'chosen'}: ${one.taskId} on GPU ${one.gpu}, ` +
        `${one.level}, ${last}, ${one.mib} MiB, idle for ${one.idleMs} ms`
      )
    }),
  ]
  return lines.join(INDENT)
}
