/** What tables and pages say of a node, from its answer. Pure. */
import type { NodeBody } from '../../controller/api/schema/node.ts'

/** `up, cordoned`; `up, draining: 3 tasks left`. */
export function statusWords({ status, cordoned, drain }: Pick<NodeBody, 'status' | 'cordoned' | 'drain'>): string {
  if (drain !== null) return `${status}, ${drain.tasks_left === 0 ? 'drained' : `draining: ${drain.tasks_left} tasks left`}`
  return cordoned ? `${status}, cordoned` : status
}

/** `4 × A100-40`; several models one after the other. */
export function gpuModels({ gpus }: { readonly gpus: readonly { readonly model: string }[] }): string {
  const byModel = Map.groupBy(gpus, ({ model }) => model)
  return [...byModel].map(([model, ofModel]) => `${ofModel.length} × ${model}`).join(', ')
}

/** Empty: the common pool. */
export function groupWords(groups: readonly string[]): string {
  return groups.length === 0 ? 'common pool' : groups.join(', ')
}
