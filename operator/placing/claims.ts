/**
 * Claims: which pods hold VRAM on a node, as GPUNode.status has them. A claim is written before the binding
 * of its pod, against the version that was read: so no two operators give the same VRAM.
 */
import type { Mib, Percent } from '../../protocol/units.ts'
import {
  admit,
  type AdmissionVerdict,
  commitLimitMib,
  type GpuLoad,
  residentCapacityMib,
} from '../../controller/model/vram.ts'
import type { Claim, GPUNodeStatus, GpuStatus } from '../contract/policies.ts'

export interface NodeLimits {
  readonly percent: Percent
  /** Reserve of each GPU. */
  readonly reserveMib: Mib
}

/**
 * Returns the status with the claim, or why the VRAM is not there. The rules are those of placement; what is
 * resident at the moment is left to the controller.
 */
export function withClaim(status: GPUNodeStatus, claim: Claim, limits: NodeLimits): GPUNodeStatus | string {
  const others = (status.claims ?? []).filter(({ podUid }) => podUid !== claim.podUid)
  for (const uuid of claim.gpuUuids) {
    const gpu = status.gpus?.find((each) => each.uuid === uuid)
    if (gpu === undefined) return `GPU ${uuid} is not on the node`
    const here = others.filter(({ gpuUuids }) => gpuUuids.includes(uuid))
    const load = loadOf(gpu, here, limits)
    const verdict = admit(load, claim.vramMib, claim.swappable ? 0 : 1)
    if (verdict !== 'FITS') return `GPU ${uuid} ${whyRefused(verdict, load, claim)}`
  }
  return summed({ ...status, claims: [...others, claim] })
}

function loadOf(gpu: GpuStatus, claims: readonly Claim[], { percent, reserveMib }: NodeLimits): GpuLoad {
  const { physicalMib, foreignMib } = gpu
  const capacityMib = residentCapacityMib(physicalMib, reserveMib, foreignMib)
  const swappable = claims.filter((claim) => claim.swappable).map(({ vramMib }) => vramMib)
  const noswap = claims.filter((claim) => !claim.swappable).map(({ vramMib }) => vramMib)
  return {
    ...{ physicalMib, reserveMib, capacityMib, limitMib: commitLimitMib(physicalMib, percent, capacityMib) },
    ...{ noswapMib: sum(noswap), swappableMib: sum(swappable) },
    largestSwappableMib: Math.max(0, ...swappable),
    freeMib: Infinity,
  }
}

function whyRefused(verdict: AdmissionVerdict, load: GpuLoad, { swappable, vramMib }: Claim): string {
  const { noswapMib, swappableMib, limitMib, capacityMib, largestSwappableMib } = load
  if (verdict === 'COMMIT_LIMIT')
    return `would have claims of ${noswapMib + swappableMib + vramMib} MiB, but the limit is ${limitMib} MiB`
  const [fixedMib, largestMib] = swappable ? [noswapMib, vramMib] : [noswapMib + vramMib, largestSwappableMib]
  const swapped = largestMib === 0 ? '' : ` and a swappable pod of ${largestMib} MiB`
  return `would have ${fixedMib} MiB that cannot be swapped${swapped}, but has only ${capacityMib} MiB`
}

export function withoutClaim(status: GPUNodeStatus, podUid: string): GPUNodeStatus {
  const { claims = [] } = status
  const kept = claims.filter((claim) => claim.podUid !== podUid)
  return kept.length === claims.length ? status : summed({ ...status, claims: kept })
}

export function withAddedClaim(status: GPUNodeStatus, claim: Claim): GPUNodeStatus {
  const { claims } = withoutClaim(status, claim.podUid)
  return summed({ ...status, claims: [...(claims ?? []), claim] })
}

/** The sums of the claims are written with them; where the bytes are follows with the next report. */
function summed(status: GPUNodeStatus): GPUNodeStatus {
  const { claims = [] } = status
  if (status.gpus === undefined) return status
  const gpus = status.gpus.map((gpu) => {
    const here = claims.filter(({ gpuUuids }) => gpuUuids.includes(gpu.uuid))
    const committedMib = sum(here.map(({ vramMib }) => vramMib))
    return { ...gpu, committedMib, residentMib: Math.max(0, committedMib - gpu.swappedOutMib) }
  })
  return { ...status, gpus, committedMib: gpus.reduce((total, gpu) => total + gpu.committedMib, 0) }
}

function sum(all: readonly Mib[]): Mib {
  return all.reduce((total, mib) => total + mib, 0)
}
