/**
 * Observe mode: the controller decides on copies of the pods, and nothing of it reaches the cluster. No gate
 * is removed, no pod is bound, and no agent gets an order. Pods count as always at work.
 */
import type { Pod } from '../contract/kubernetes.ts'
import { type Bindings, type FilterAnswer, refusal } from './pod-bindings.ts'
import type { Admission } from './pod-conditions.ts'
import { type PodStage, stageOf } from './pod-task.ts'

const OBSERVES = 'Headroom only observes'

/** Whichever scheduler has placed it, the controller decides on it until it ends. */
export function observedStage(pod: Pod): PodStage {
  if (pod.metadata.deletionTimestamp !== undefined) return 'over'
  const stage = stageOf(pod)
  return stage === 'over' || stage === 'held' ? stage : 'waiting'
}

/** Returns the condition of an observed pod: the placement that it would get, and its actual state. */
export function observedAdmission(pod: Pod, nodeName: string | null, whyNot: string): Admission {
  const { nodeName: own = '' } = pod.spec
  const now = own === '' ? 'It has no node yet.' : `It is on ${own}.`
  return nodeName === null
    ? { status: 'False', reason: 'WouldWait', message: `${OBSERVES}. ${now} ${whyNot}` }
    : {
        ...{ status: 'True', reason: 'WouldRun' },
        message: `${OBSERVES}. ${now} It would get VRAM on ${nodeName} now.`,
      }
}

/** Every start succeeds, and the scheduler gets no answer that it could use. */
export class ObservedBindings implements Bindings {
  begin(...[, , done]: Parameters<Bindings['begin']>): void {
    queueMicrotask(() => done({ error: null }))
  }

  filter(_podUid: string, candidates: readonly string[]): FilterAnswer {
    return refusal(candidates, OBSERVES)
  }

  bind(): Promise<string> {
    return Promise.resolve(OBSERVES)
  }

  /** The claim of a pod that is not bound stays, as the pod does. */
  release(): Promise<null> {
    return Promise.resolve(null)
  }

  isOnItsWay(): boolean {
    return false
  }

  abandon(): void {}
  podChanged(): void {}
  tryAgain(): void {}
  forget(): void {}
  close(): void {}
}
