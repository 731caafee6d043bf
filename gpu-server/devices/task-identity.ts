/** The users that tasks of a GPU server run as (docs/decisions/0076). */
import type { TaskIdentityKind } from '../../protocol/units.ts'

export interface IdRange {
  readonly from: number
  readonly to: number
}

export type TaskIdentity =
  /** Each attempt has a user id of its own from the range. */
  | { readonly kind: 'uid_per_attempt'; readonly ids: IdRange }
  /** All tasks share one user; a group id from the range keeps their control sockets apart. */
  | {
      readonly kind: 'task_user'
      readonly uid: number
      readonly gid: number
      readonly home: string
      readonly ids: IdRange
    }
  /** `--task-user root`: tasks are root. */
  | { readonly kind: 'root' }
  /** `--tasks-as-me`: tasks run as the server's user, which is not root. */
  | { readonly kind: 'server_user' }

/** One id for each attempt that may live or wait for an acknowledgement on a node (MAX_ATTEMPTS_PER_NODE). */
export const DEFAULT_IDS: IdRange = { from: 200_000, to: 201_023 }

/** Number of attempts that can have an id at once; null: ids are not needed. */
export function attemptsWithIds(identity: TaskIdentity): number | null {
  return 'ids' in identity ? identity.ids.to - identity.ids.from + 1 : null
}

export function kindOf(identity: TaskIdentity): TaskIdentityKind {
  return identity.kind
}
