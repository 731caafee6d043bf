/** Mutants: each commits VRAM to a task that is being prepared (docs/decisions/0122). */
import { edit, type Mutant } from './mutant.ts'

const ENGINE = 'controller/engine/apply'
const PREPARATIONS = `${ENGINE}/lifecycle/preparations.ts`
/** Drawn worlds of `sim fuzz` have no images. */
const directed = { test: 'test/property/preparing.test.ts' }

export const PREPARING_MUTANTS: readonly Mutant[] = [
  {
    name: 'a-prepares-in-vram',
    rule: 'admission',
    says: 'a task is placed at once on the node that prepares it',
    edits: [
      edit(
        `${ENGINE}/vram/placing.ts`,
        'placeByPlan',
        "beginPreparing(c, task, plan.node as LiveNode, now)\n    return 'placed'\n",
        'beginPreparing(c, task, plan.node as LiveNode, now)\n',
      ),
    ],
    directed,
  },
  {
    name: 'a-prepares-in-the-queue',
    rule: 'admission',
    says: 'a task that is being prepared stays in its queue, and reserves VRAM as head',
    edits: [edit(PREPARATIONS, 'leaveQueue', '  c.dequeue(task)\n', '')],
    directed,
  },
  {
    name: 'a-reported-preparation-keeps-its-turn',
    rule: 'admission',
    says: 'a preparation that a node reports after a restart of the controller leaves the task in its queue',
    edits: [
      edit(PREPARATIONS, 'applyReport', "    if (report.state === 'preparing') leaveQueue(c, task)\n", ''),
    ],
    directed,
  },
  {
    name: 'a-starts-what-it-prepares',
    rule: 'admission',
    says: 'a task joins its queue again as soon as its node has accepted to prepare it',
    edits: [
      edit(
        PREPARATIONS,
        'applyPrepareAnswer',
        "return setPreparation(c, task, node, { ...present, state: 'preparing', seq })",
        "return void (setPreparation(c, task, node, { ...present, state: 'preparing', seq }), " +
          'c.enqueue(task, now))',
      ),
    ],
    directed,
  },
]
