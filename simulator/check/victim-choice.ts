/**
 * `victim_choice`: the victims of a decision are those that semantics section 5, "Choice", names, derived
 * again from separate marks and by trying every subset. Checked only if one GPU has a shortfall: with
 * several, a victim counts for all of them.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Mib } from '../../protocol/units.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'
import { movableMib, type ShadowTask } from './shadow.ts'
import { storedMarks } from './stored-marks.ts'
import {
  CLASSES,
  classOf,
  eligibleOn,
  swapDecisionOf,
  type SwapDecision,
  type VictimClass,
} from './swap-decision.ts'

interface Mark {
  /** It was swapped out in the current round of its class. */
  isSwapped: boolean
  lastDecision: number
}

/** Marks of one GPU and class. */
type Marks = Map<string, Mark>

/** Above this number of tasks, subsets are not tried one by one. */
const MOST_TRIED = 12
const NEVER = -1

export function victimChoice({ shadow, observed, report }: RuleContext): AlwaysRule {
  const books = new Map<string, Marks>()
  const marksOf = (nodeId: string, gpu: number, victimClass: VictimClass): Marks => {
    const key = `${nodeId}/${gpu}/${victimClass}`
    const marks = books.get(key) ?? new Map<string, Mark>()
    books.set(key, marks)
    return marks
  }
  return {
    before(event) {
      const task = shadow.tasks.get(event.taskId ?? '')
      if (task?.placement && (event.kind === 'task_finished' || event.kind === 'task_returned'))
        for (const gpu of task.placement.gpus)
          for (const victimClass of CLASSES) marksOf(task.placement.nodeId, gpu, victimClass).delete(task.id)
      const decision = swapDecisionOf(event, shadow)
      if (decision === null) return
      const [only] = decision.missing
      const marks = (task: ShadowTask): Mark =>
        marksOf(decision.node.id, only?.gpu ?? 0, classOf(task)).get(task.id) ?? {
          isSwapped: false,
          lastDecision: NEVER,
        }
      // With faults, the tasks that the controller considered eligible are unknown.
      const isDisturbed = observed.faults?.isDisturbed(decision.node.id) === true
      if (only !== undefined && decision.missing.length === 1 && !isDisturbed) {
        const problem = problemOf(decision, only, eligibleOn(only.gpu, decision, shadow, observed), marks)
        if (problem !== null) report(problem, { taskId: decision.requester.id, nodeId: decision.node.id })
      }
      enter(event, decision, marksOf)
    },
    setBack({ stored }) {
      books.clear()
      for (const { taskId, nodeId, gpu, victimClass, isSwapped, lastSwapOut } of storedMarks(stored))
        marksOf(nodeId, gpu, victimClass).set(taskId, { isSwapped, lastDecision: lastSwapOut ?? NEVER })
    },
  }
}

function problemOf(
  decision: SwapDecision,
  { gpu, mib: missingMib }: SwapDecision['missing'][number],
  eligible: readonly ShadowTask[],
  markOf: (task: ShadowTask) => Mark,
): string | null {
  const chosen = new Set(decision.victims.map(({ id }) => id))
  const taken = eligible.filter(({ id }) => chosen.has(id))
  // Another rule checks eligibility; a collector takes whatever is available.
  if (taken.length < chosen.size || total(eligible) < missingMib) return null
  if (total(taken) < missingMib) return `${total(taken)} MiB leave GPU ${gpu}, ${missingMib} are missing`
  const levels = Array.from({ length: 4 * CLASSES.length }, (_, level) =>
    eligible.filter((task) => levelOf(task, markOf(task)) === level),
  )
  let leftMib = missingMib
  for (const level of levels) {
    const leaving = level.filter(({ id }) => chosen.has(id))
    if (leftMib <= 0) {
      if (leaving.length > 0)
        return `${idsOf(leaving)} leave GPU ${gpu} although those before cover what is missing`
      continue
    }
    if (total(level) <= leftMib) {
      if (leaving.length < level.length)
        return `not all of ${idsOf(level)} leave GPU ${gpu}, and they are needed first`
    } else {
      const least = leastOf(level, leftMib, markOf)
      if (total(leaving) < leftMib) return `of ${idsOf(level)} too few leave GPU ${gpu} before others do`
      if (least !== null && total(leaving) !== least)
        return `${idsOf(leaving)} leave GPU ${gpu}; ${least} MiB of the longest not swapped would do`
    }
    leftMib -= total(leaving)
  }
  return null
}

/**
 * The fewest bytes that cover the shortfall, with as few whole blocks of the oldest swap-outs as possible;
 * null if there are too many tasks to try.
 */
function leastOf(
  level: readonly ShadowTask[],
  missingMib: Mib,
  markOf: (task: ShadowTask) => Mark,
): Mib | null {
  const ages = [...new Set(level.map((task) => markOf(task).lastDecision))].sort((a, b) => a - b)
  let blocks: readonly ShadowTask[] = []
  for (const age of ages) {
    if (total(blocks) >= missingMib) break
    blocks = level.filter((task) => markOf(task).lastDecision <= age)
  }
  if (blocks.length > MOST_TRIED) return null
  let least = Infinity
  for (let subset = 1; subset < 1 << blocks.length; subset++) {
    const mib = total(blocks.filter((_, index) => (subset & (1 << index)) !== 0))
    if (mib >= missingMib && mib < least) least = mib
  }
  return least
}

function levelOf(task: ShadowTask, { isSwapped }: Mark): number {
  return 4 * CLASSES.indexOf(classOf(task)) + (isSwapped ? 2 : 0) + (isAboveRequest(task) ? 0 : 1)
}

/** By a growth; an exclusive task requested its whole GPU. */
function isAboveRequest({ placement, request: { gpuMode, vramMib } }: ShadowTask): boolean {
  return gpuMode === 'shared' && placement !== null && placement.demandMib > vramMib
}

/** Marks the victims; if one was marked already, its class begins a new round with this victim only. */
function enter(
  event: Event,
  { node, victims }: SwapDecision,
  marksOf: (nodeId: string, gpu: number, victimClass: VictimClass) => Marks,
): void {
  const lastDecision = event.data['decision'] as number
  for (const { gpu, class: victimClass } of victims.filter(
    (victim, index) => victims.findIndex(isBeside(victim)) === index,
  )) {
    const marks = marksOf(node.id, gpu, victimClass)
    const here = victims.filter(isBeside({ gpu, class: victimClass })).map(({ id }) => id)
    const again = here.filter((id) => marks.get(id)?.isSwapped === true)
    if (again.length > 0) for (const mark of marks.values()) mark.isSwapped = false
    for (const id of here)
      marks.set(id, { isSwapped: again.length === 0 || again.includes(id), lastDecision })
  }
}

type Place = Pick<SwapDecision['victims'][number], 'gpu' | 'class'>

function isBeside({ gpu, class: victimClass }: Place): (other: Place) => boolean {
  return (other) => other.gpu === gpu && other.class === victimClass
}

function total(tasks: readonly ShadowTask[]): Mib {
  return tasks.reduce((mib, task) => mib + movableMib(task), 0)
}

function idsOf(tasks: readonly ShadowTask[]): string {
  return tasks.map(({ id }) => id).join(', ')
}
