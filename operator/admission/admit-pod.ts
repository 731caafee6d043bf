/**
 * Decides on a new pod: refused with its faults, or changed so that Headroom can place and swap it. Applied
 * to its own result it changes nothing, because the API server calls again after other webhooks.
 */
import { annotationPath, faulty, type FieldFault, faultText } from '../contract/field-fault.ts'
import type { Container, Pod, PodSpec, Toleration } from '../contract/kubernetes.ts'
import {
  NODE_TAINT,
  POD_ANNOTATIONS,
  SCHEDULER_NAME,
  SCHEDULING_GATE,
  SWAP_VARIABLE,
  VRAM_RESOURCE,
} from '../contract/names.ts'
import { podRequestOf, type PodRequest, runtimeOf } from '../contract/pod-request.ts'
import { quantityMib } from '../contract/quantity.ts'
import { wakePortsOf } from '../contract/wake-ports.ts'
import type { AdmissionOptions } from './admission-options.ts'
import { withMoreMemory, withoutVariable, withResource, withVariable } from './container-fields.ts'
import { swapMode } from './swap-mode.ts'
import { HELPER_NAME, withSwapProbes } from './swap-probes.ts'

export type Admitted =
  | { readonly ok: true; readonly pod: Pod; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly faults: readonly FieldFault[] }

/** The name of pods that the kubelet reads from files. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror'
const GPU_VARIABLES = ['NVIDIA_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES']
const DEFAULT_SCHEDULERS = [undefined, '', 'default-scheduler', SCHEDULER_NAME]
const TOLERATION: Toleration = { key: NODE_TAINT, operator: 'Exists', effect: 'NoSchedule' }

export function admitPod(pod: Pod, options: AdmissionOptions): Admitted {
  const runtime = runtimeOf(pod.metadata)
  if (!runtime.isOurs) return { ok: true, pod, warnings: runtime.warning === null ? [] : [runtime.warning] }
  const annotations = pod.metadata.annotations ?? {}
  if (annotations[MIRROR_ANNOTATION] !== undefined) return { ok: true, pod, warnings: [] }
  if (pod.spec.nodeName !== undefined)
    return faulty('spec.nodeName', 'must not be set: Headroom chooses the node. Use spec.nodeSelector.')
  if (annotations[POD_ANNOTATIONS.gpuUuids] !== undefined)
    return faulty(annotationPath(POD_ANNOTATIONS.gpuUuids), 'must not be set: Headroom writes it')
  const request = podRequestOf(pod)
  if (!request.ok) return request
  const mode = swapMode(pod, request.value)
  if (!mode.ok) return mode
  return admitOurs(pod, request.value, mode.value, options)
}

function admitOurs(
  pod: Pod,
  request: PodRequest,
  mode: { readonly isSwappable: boolean; readonly warnings: readonly string[] },
  options: AdmissionOptions,
): Admitted {
  const probed = mode.isSwappable
    ? withSwapProbes(pod, request.containers, options.helperImage)
    : { spec: pod.spec }
  const notSwappable = 'refused' in probed ? probed.refused : null
  const isSwapped = mode.isSwappable && notSwappable === null
  const neededMib = request.vramMib * request.gpus
  const ofMemory =
    isSwapped && options.swapMemory === 'require' ? memoryFaults(pod.spec, request, neededMib) : []
  if (ofMemory.length > 0) return { ok: false, faults: ofMemory }
  const spec = 'spec' in probed ? probed.spec : pod.spec
  const raise = isSwapped && options.swapMemory === 'raise'
  const memory = raise ? raisedMemory(pod, spec, request, neededMib) : { spec, annotation: undefined }
  const { [POD_ANNOTATIONS.notSwappable]: _old, ...annotations } = pod.metadata.annotations ?? {}
  return {
    ok: true,
    warnings: [
      ...mode.warnings,
      ...(notSwappable === null ? [] : [`the pod is not swapped out: ${notSwappable}`]),
      ...schedulerWarning(pod.spec),
      ...smallVramWarning(annotations[POD_ANNOTATIONS.podVram] ?? ''),
      ...(isSwapped ? wakeWarning({ ...pod, spec }, request) : []),
    ],
    pod: {
      ...pod,
      metadata: {
        ...pod.metadata,
        annotations: {
          ...annotations,
          [POD_ANNOTATIONS.swapFromVram]: String(mode.isSwappable),
          ...(notSwappable === null ? {} : { [POD_ANNOTATIONS.notSwappable]: notSwappable }),
          ...(memory.annotation === undefined ? {} : { [POD_ANNOTATIONS.memoryRaised]: memory.annotation }),
        },
      },
      spec: scheduled(equipped(memory.spec, request, isSwapped, neededMib), options),
    },
  }
}

/** Gate, scheduler, toleration, runtime class. */
function scheduled(spec: PodSpec, { runtimeClassName }: AdmissionOptions): PodSpec {
  const { schedulingGates = [], tolerations = [] } = spec
  const isGated = schedulingGates.some(({ name }) => name === SCHEDULING_GATE)
  const isTolerated = tolerations.some(({ key, operator }) => key === NODE_TAINT && operator === 'Exists')
  return {
    ...spec,
    schedulerName: SCHEDULER_NAME,
    schedulingGates: isGated ? schedulingGates : [...schedulingGates, { name: SCHEDULING_GATE }],
    tolerations: isTolerated ? tolerations : [...tolerations, TOLERATION],
    ...(spec.runtimeClassName === undefined && runtimeClassName !== null ? { runtimeClassName } : {}),
  }
}

/** Variables and the resource of quotas. Init containers get the same GPUs. */
function equipped(spec: PodSpec, request: PodRequest, isSwapped: boolean, neededMib: number): PodSpec {
  const getsGpus = ({ name }: Container): boolean => request.containers.includes(name)
  const [counted] = request.containers
  const own = (container: Container, hasGpus: boolean): Container => {
    const [specified, alias] = SWAP_VARIABLE
    const swap = { name: specified, value: isSwapped ? '1' : '0' }
    return withGpus(withVariable(withoutVariable(container, alias), swap), hasGpus)
  }
  return {
    ...spec,
    containers: spec.containers.map((container) => {
      const equippedOne = own(container, getsGpus(container))
      return container.name === counted ? withResource(equippedOne, VRAM_RESOURCE, neededMib) : equippedOne
    }),
    ...(spec.initContainers === undefined
      ? {}
      : { initContainers: spec.initContainers.map((each) => own(each, each.name !== HELPER_NAME)) }),
  }
}

/** The GPUs are known when the pod is bound, and read when its containers are created. */
function withGpus(container: Container, hasGpus: boolean): Container {
  const [visible = ''] = GPU_VARIABLES
  if (!hasGpus) return withVariable(container, { name: visible, value: 'void' })
  const fieldPath = `metadata.annotations['${POD_ANNOTATIONS.gpuUuids}']`
  return GPU_VARIABLES.reduce(
    (each, name) => withVariable(each, { name, valueFrom: { fieldRef: { fieldPath } } }),
    container,
  )
}

/** The pod itself, if it has resources of its own, counts under this name, which no container can have. */
const WHOLE_POD = '*'

function raisedMemory(pod: Pod, spec: PodSpec, { containers: names }: PodRequest, mib: number) {
  const done = new Set(
    (pod.metadata.annotations?.[POD_ANNOTATIONS.memoryRaised] ?? '')
      .split(',')
      .flatMap((entry) => (entry.endsWith(`=${mib}`) ? [entry.slice(0, entry.lastIndexOf('='))] : [])),
  )
  const raisedOne = (name: string, resources: Container['resources']): Container['resources'] => {
    const has = resources?.requests?.['memory'] !== undefined || resources?.limits?.['memory'] !== undefined
    if (resources === undefined || !has || done.has(name)) return resources
    done.add(name)
    return withMoreMemory(resources, mib)
  }
  const containers = spec.containers.map((container) => {
    if (!names.includes(container.name)) return container
    const resources = raisedOne(container.name, container.resources)
    return resources === undefined ? container : { ...container, resources }
  })
  const ofPod = raisedOne(WHOLE_POD, spec.resources)
  return {
    spec: { ...spec, containers, ...(ofPod === undefined ? {} : { resources: ofPod }) },
    annotation: done.size === 0 ? undefined : [...done].map((name) => `${name}=${mib}`).join(','),
  }
}

function memoryFaults(
  { containers }: PodSpec,
  { containers: names }: PodRequest,
  mib: number,
): readonly FieldFault[] {
  return containers.flatMap(({ name, resources }, index) => {
    const limit = resources?.limits?.['memory']
    const limitMib = limit === undefined ? null : quantityMib(String(limit))
    if (!names.includes(name) || limitMib === null || limitMib >= mib) return []
    const path = `spec.containers[${index}].resources.limits.memory`
    return [
      { path, message: `must be at least ${mib}Mi: VRAM that is swapped out is memory of the container` },
    ]
  })
}

function schedulerWarning({ schedulerName }: PodSpec): readonly string[] {
  return DEFAULT_SCHEDULERS.includes(schedulerName)
    ? []
    : [`spec.schedulerName ${schedulerName} is replaced by ${SCHEDULER_NAME}`]
}

function smallVramWarning(text: string): readonly string[] {
  if (!/^\d+$/.test(text) || Number(text) >= 1_000_000) return []
  const path = annotationPath(POD_ANNOTATIONS.podVram)
  return [faultText({ path, message: `${text} are bytes; did you mean ${text}Gi?` })]
}

function wakeWarning(pod: Pod, request: PodRequest): readonly string[] {
  if (request.wakesOnRequest !== true || wakePortsOf(pod, request).length > 0) return []
  const path = annotationPath(POD_ANNOTATIONS.wakeOnRequest)
  return [faultText({ path, message: 'no request can wake the pod; declare a TCP containerPort' })]
}
