/**
 * The controller of a simulation refused a task of the workload, or had no room for it: the run cannot
 * continue.
 */

/** The controller's answer. */
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
    return `too many tasks are pending (limit: ${limit}). Use fewer or later tasks, or a larger fleet`
  return detail ?? problems?.map((problem) => problem.detail).join('; ') ?? code
}
