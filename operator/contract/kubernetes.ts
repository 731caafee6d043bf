/** The parts of Kubernetes' own objects that Headroom reads and writes. Other fields pass through unread. */

export interface ObjectMeta {
  readonly name?: string
  readonly generateName?: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly OwnerReference[]
  readonly finalizers?: readonly string[]
}

export interface OwnerReference {
  readonly apiVersion?: string
  readonly uid?: string
  readonly kind: string
  readonly name: string
  readonly controller?: boolean
}

export interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string; readonly apiVersion?: string }
    readonly configMapKeyRef?: object
    readonly secretKeyRef?: object
    readonly resourceFieldRef?: object
  }
}

export type ResourceList = Readonly<Record<string, string | number>>

export interface ResourceRequirements {
  readonly requests?: ResourceList
  readonly limits?: ResourceList
}

export interface ContainerPort {
  readonly name?: string
  readonly containerPort: number
  /** TCP (default), UDP or SCTP. */
  readonly protocol?: string
  readonly hostPort?: number
}

export interface HttpGet {
  readonly path?: string
  readonly port: number | string
  readonly host?: string
  readonly scheme?: string
  readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[]
}

export interface Probe {
  readonly exec?: { readonly command?: readonly string[] }
  readonly httpGet?: HttpGet
  readonly tcpSocket?: { readonly port: number | string; readonly host?: string }
  readonly grpc?: { readonly port: number; readonly service?: string | null }
  readonly timeoutSeconds?: number
  readonly failureThreshold?: number
}

export interface VolumeMount {
  readonly name: string
  readonly mountPath: string
  readonly readOnly?: boolean
}

export interface Container {
  readonly name: string
  readonly image?: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly EnvVar[]
  readonly ports?: readonly ContainerPort[]
  readonly resources?: ResourceRequirements
  readonly volumeMounts?: readonly VolumeMount[]
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
  /** "Always" on an init container: it runs next to the others. */
  readonly restartPolicy?: string
  readonly securityContext?: object
}

export interface Toleration {
  readonly key?: string
  readonly operator?: string
  readonly value?: string
  readonly effect?: string
}

export interface PodSpec {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly nodeName?: string
  readonly schedulerName?: string
  readonly terminationGracePeriodSeconds?: number
  readonly schedulingGates?: readonly { readonly name: string }[]
  readonly priorityClassName?: string
  readonly priority?: number
  readonly runtimeClassName?: string
  readonly tolerations?: readonly Toleration[]
  readonly volumes?: readonly ({ readonly name: string } & Readonly<Record<string, unknown>>)[]
  readonly resources?: ResourceRequirements
  readonly nodeSelector?: Readonly<Record<string, string>>
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms: readonly NodeSelectorTerm[]
      }
    }
  }
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeRequirement[]
  readonly matchFields?: readonly NodeRequirement[]
}

export interface NodeRequirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}

export interface PodCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

export interface Pod {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
  readonly spec: PodSpec
  readonly status?: {
    readonly phase?: string
    readonly conditions?: readonly PodCondition[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

export interface ContainerStatus {
  readonly name: string
  /** `containerd://ID`. */
  readonly containerID?: string
  readonly state?: { readonly running?: object }
}

export interface Taint {
  readonly key: string
  readonly value?: string
  readonly effect: string
}

export interface Node {
  readonly metadata: ObjectMeta
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] }
}
