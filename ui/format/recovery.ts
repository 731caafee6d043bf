/** Texts for a store that went back to an earlier state. Pure. */
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
      `The store is behind: ${ahead.length} of ${nodes(heard)} ${ahead.length === 1 ? 'has' : 'have'} ` +
      'events that are missing from it. No task is placed, requeued or declared lost.'
    )
  }
  if (recovery !== null) {
    const why = recovery.reason === 'restored' ? 'the store was restored' : 'a loss of data was accepted'
    const left = reported(recovery.nodes_awaited.length, 'more ')
    return (
      `The controller is in recovery because ${why}. No task is placed, requeued or declared lost ` +
      `until ${left}.`
    )
  }
  if (state.placements_paused === 'AWAITING_NODES') {
    const awaited = reported(state.nodes_awaited_since_start.length)
    return `The controller has just started. No task is placed until ${awaited}, or until 15 s have passed.`
  }
  if (ahead.length > 0) {
    const [have, receive] = ahead.length === 1 ? ['has', 'It receives'] : ['have', 'They receive']
    return (
      `${ahead.length} of ${nodes(heard)} ${have} events that are missing from the store. ${receive} ` +
      'no commands, and tasks are placed on the other nodes.'
    )
  }
  const attempts = state.quarantined_attempts
  const quarantine =
    attempts === 0
      ? ''
      : ` ${whole(attempts)} quarantined ${attempts === 1 ? 'attempt is' : 'attempts are'} waiting ` +
        'to be adopted or stopped.'
  return `No recovery is in progress. Tasks are placed as usual.${quarantine}`
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
  if (reason === 'higher_epoch') return 'It was managed by a controller with a later epoch.'
  if (reason === 'other_controller') return 'It was managed by another controller with the same epoch.'
  return `It has events of epoch ${whole(epoch)} that are missing from the store.`
}

/** `2 × 1 000 MiB on GPU 0, 1`. */
export function vramWords({ gpus, vram_mib: each }: Pick<AttemptBody, 'gpus' | 'vram_mib'>): string {
  return `${gpus.length === 1 ? '' : `${gpus.length} × `}${mib(each)} on GPU ${gpus.join(', ')}`
}

/** The owner that the node states: a hint, to be shown as unconfirmed. */
export function statedOwner({ record }: Pick<AttemptBody, 'record'>): string {
  return record === null ? UNKNOWN : (record.owner ?? 'none reported')
}

/** The name that the node states; if it states none, the id of the task. */
export function attemptName({ record, task_id: taskId }: Pick<AttemptBody, 'record' | 'task_id'>): string {
  return record?.name ?? taskId
}

export const NO_RECORD = 'The node does not respond, or its version does not keep records of attempts.'
