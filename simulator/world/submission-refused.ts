/**
 * A controller in a simulation took a task of the workload for wrong, or had no room for it: the run cannot
 * go on as its scenario says.
 */

/** What the controller answered. */
export interface Refused {
  readonly code: string
  readonly detail?: string
  readonly limit?: number
  readonly problems?: readonly { readonly detail: string }[]
}

export class SubmissionRefused extends Error {
  override readonly name = 'SubmissionRefused'

  constructor(taskId: string, refused: Refused) {
    super(`the controller refused task ${taskId}: ${inWords(refused)}`)
  }
}

function inWords({ code, detail, limit, problems }: Refused): string {
  if (code === 'too_many_pending')
    return `${limit} tasks are pending, and it takes no more: fewer tasks, later ones, or a larger fleet`
  return detail ?? problems?.map((problem) => problem.detail).join('; ') ?? code
}
