import type { Decision } from '../../controller/model/decision.ts'

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
    `${kind} ${number} of task ${taskName} (${taskId}) on ${nodeName}, GPU ${gpus.join(', ')}, by the ` +
      `rule ${rule}`,
    sentence,
    ...(victimIds.length === 0 ? [] : [`swapped out: ${victimIds.join(', ')}`]),
    ...(missing.length === 0
      ? []
      : [`missing: ${missing.map(({ gpu, mib }) => `${mib} MiB on GPU ${gpu}`).join(', ')}`]),
    ...gpusConsidered.map(
      (one) =>
        `${one.isChosen ? 'chosen' : 'not'}: ${one.nodeName} GPU ${one.gpu}, keys ${one.key1} and ` +
        `${one.key2}`,
    ),
    ...candidates.map((one) => {
      const last = one.lastSwapOut === null ? 'never left' : `left by ${one.lastSwapOut}`
      return (
        `${one.chosenBy === null ? 'stays' : 'leaves'}: ${one.taskId} on GPU ${one.gpu}, ${one.level}, ` +
        `${last}, ${one.mib} MiB, idle for ${one.idleMs} ms`
      )
    }),
  ]
  return lines.join(INDENT)
}
