/** Texts for a store that went back in time. Pure. */
import type { AttemptBody, RecoveryBody } from '../../controller/api/tasks/attempt-schema.ts'
import { mib, UNKNOWN, whole } from './figures.ts'

type State = Pick<
  RecoveryBody,
  | 'placements_paused'
  | 'recovery'
  | 'nodes_awaited_since_start'
  | 'nodes_heard'
  | 'nodes_ahead'
  | 'quarantined_attempts'
>

/** The state in one sentence. */
export function recoverySentence(state: State): string {
  const { recovery, nodes_ahead: ahead, nodes_heard: heard } = state
  if (state.placements_paused === 'STORE_BEHIND') {
    return (
      `The store is behind: ${ahead.length} of ${nodes(heard)} ${ahead.length === 1 ? 'knows' : 'know'} ` +
      'events that it lacks. Nothing is placed, requeued or given up.'
    )
  }
  if (recovery !== null) {
    const why = recovery.reason === 'restored' ? 'the store was restored' : 'a loss was accepted'
    const left = reported(recovery.nodes_awaited.length, 'more ')
    return (
      `The controller is in recovery because ${why}: nothing is placed, requeued or given up until ` +
      `${left}.`
    )
  }
  if (state.placements_paused === 'AWAITING_NODES') {
    const awaited = reported(state.nodes_awaited_since_start.length)
    return `The controller has just started: nothing is placed until ${awaited}, for at most 15 s.`
  }
  if (ahead.length > 0) {
    const [know, get] = ahead.length === 1 ? ['knows', 'it gets'] : ['know', 'they get']
    return (
      `${ahead.length} of ${nodes(heard)} ${know} events that the store lacks: ${get} no commands, and ` +
      'tasks are placed on the other nodes.'
    )
  }
  const attempts = state.quarantined_attempts
  const quarantine =
    attempts === 0
      ? ''
      : ` ${whole(attempts)} quarantined ${attempts === 1 ? 'attempt waits' : 'attempts wait'} for a ` +
        'decision.'
  return `No recovery is in progress, and tasks are placed.${quarantine}`
}

function nodes(count: number, more = ''): string {
  return `${whole(count)} ${more}${count === 1 ? 'node' : 'nodes'}`
}

function reported(count: number, more = ''): string {
  return `${nodes(count, more)} ${count === 1 ? 'has' : 'have'} reported`
}

/** Why a node is ahead of the store. */
export function aheadWords({
  reason,
  epoch,
}: Pick<RecoveryBody['nodes_ahead'][number], 'reason' | 'epoch'>): string {
  if (reason === 'higher_epoch') return 'It followed a controller with a later epoch.'
  if (reason === 'other_controller') return 'It followed another controller with the same epoch.'
  return `It knows events of epoch ${whole(epoch)} that the store lacks.`
}

/** `2 × 1 000 MiB on GPU 0, 1`. */
export function vramWords({ gpus, vram_mib: each }: Pick<AttemptBody, 'gpus' | 'vram_mib'>): string {
  return `${gpus.length === 1 ? '' : `${gpus.length} × `}${mib(each)} on GPU ${gpus.join(', ')}`
}

/** The owner that the node states: a hint, to be shown as unconfirmed. */
export function statedOwner({ record }: Pick<AttemptBody, 'record'>): string {
  return record === null ? UNKNOWN : (record.owner ?? 'none stated')
}

/** The name that the node states; if it states none, the id of the task. */
export function attemptName({ record, task_id: taskId }: Pick<AttemptBody, 'record' | 'task_id'>): string {
  return record?.name ?? taskId
}

export const NO_RECORD = 'The node does not respond, or its version keeps no records of attempts.'
