/** The fields of a pod that a kubelet of ours acts on. */
import type { Container, ObjectMeta, Pod, PodSpec } from '../../../operator/contract/kubernetes.ts'

interface FromObject {
  readonly secretName?: string
  readonly name?: string
  readonly optional?: boolean
  readonly defaultMode?: number
  readonly items?: readonly { readonly key: string; readonly path: string }[]
}

export interface VolumeSource {
  readonly secret?: FromObject
  readonly configMap?: FromObject
  readonly serviceAccountToken?: {
    readonly path: string
    readonly audience?: string
    readonly expirationSeconds?: number
  }
  readonly downwardAPI?: { readonly items: readonly { readonly path: string }[] }
}

export interface Volume extends VolumeSource {
  readonly name: string
  readonly emptyDir?: object
  readonly hostPath?: { readonly path: string; readonly type?: string }
  readonly projected?: { readonly sources: readonly VolumeSource[]; readonly defaultMode?: number }
}

export interface SecurityContext {
  readonly runAsUser?: number
  readonly runAsGroup?: number
  readonly runAsNonRoot?: boolean
  readonly fsGroup?: number
  readonly readOnlyRootFilesystem?: boolean
  readonly allowPrivilegeEscalation?: boolean
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] }
}

export interface StackContainer extends Container {
  readonly securityContext?: SecurityContext
}

export interface StackPodObject extends Pod {
  readonly metadata: ObjectMeta
  readonly spec: PodSpec & {
    readonly containers: readonly StackContainer[]
    readonly volumes?: readonly Volume[]
    readonly serviceAccountName?: string
    readonly restartPolicy?: string
    readonly securityContext?: SecurityContext
  }
}
