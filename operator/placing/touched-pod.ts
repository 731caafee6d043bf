import type { Pod } from '../contract/kubernetes.ts'
import { PLACING_ANNOTATION } from '../contract/names.ts'
import { INVALID, type KubeApi, KubeError, NOT_FOUND, PODS } from '../ports/kube-api.ts'
import type { PodKey } from './binding.ts'

/**
 * Gives the pod a new version. Null: it is gone. Rejects if other writes were faster, as after every failure.
 * @param mark differs from the one before
 */
export async function touchedPod(
  api: KubeApi,
  podUid: string,
  key: PodKey,
  mark: string,
): Promise<Pod | null> {
  const body = { metadata: { uid: podUid, annotations: { [PLACING_ANNOTATION]: mark } } }
  try {
    return (await api.patch(PODS, key, { type: 'merge', body })) as unknown as Pod
  } catch (error) {
    if (error instanceof KubeError && (error.code === NOT_FOUND || hasOtherUid(error))) return null
    throw error
  }
}

/** Another pod has the name, and the uid of a pod cannot be changed. */
function hasOtherUid({ code, faults }: KubeError): boolean {
  return code === INVALID && faults.some(({ path }) => path === 'metadata.uid')
}
