/**
 * Claims: which pods hold VRAM on a node, as GPUNode.status has them. A claim is written before the binding
 * of its pod, against the version that was read: so no two operators give the same VRAM.
 */
import type { Mib, Percent } from '../../protocol/units.ts'
import { commitLimitMib, residentCapacityMib } from '../../controller/model/vram.ts'
import type { Claim, GPUNodeStatus } from '../contract/policies.ts'

export interface NodeLimits {
  readonly percent: Percent
  /** Reserve of each GPU. */
  readonly reserveMib: Mib
}

/** Returns the status with the claim, or why the VRAM is not there. */
export function withClaim(status: GPUNodeStatus, claim: Claim, limits: NodeLimits): GPUNodeStatus | string {
  const others = (status.claims ?? []).filter(({ podUid }) => podUid !== claim.podUid)
  for (const uuid of claim.gpuUuids) {
    const gpu = status.gpus?.find((each) => each.uuid === uuid)
    if (gpu === undefined) return `GPU ${uuid} is not on the node`
    const here = others.filter(({ gpuUuids }) => gpuUuids.includes(uuid))
    const sum = (claims: readonly Claim[]): Mib => claims.reduce((total, { vramMib }) => total + vramMib, 0)
    const capacityMib = residentCapacityMib(gpu.physicalMib, limits.reserveMib, gpu.foreignMib)
    const limitMib = commitLimitMib(gpu.physicalMib, limits.percent, capacityMib)
    const all = sum(here) + claim.vramMib
    // Pods that are never swapped need physical VRAM alone (specification 2.3).
    if (claim.swappable && all > limitMib)
      return `GPU ${uuid} would have claims of ${all} MiB, but the limit is ${limitMib} MiB`
    const fixed = sum(here.filter(({ swappable }) => !swappable)) + (claim.swappable ? 0 : claim.vramMib)
    if (fixed > capacityMib)
      return `GPU ${uuid} would have ${fixed} MiB that cannot be swapped, but has only ${capacityMib} MiB`
  }
  return summed({ ...status, claims: [...others, claim] })
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
    const committedMib = here.reduce((total, { vramMib }) => total + vramMib, 0)
    return { ...gpu, committedMib, residentMib: Math.max(0, committedMib - gpu.swappedOutMib) }
  })
  return { ...status, gpus, committedMib: gpus.reduce((total, gpu) => total + gpu.committedMib, 0) }
}
