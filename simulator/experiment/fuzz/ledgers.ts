/**
 * Compares the controller's sums with a recount: the figures of each GPU, host memory, events, and the state
 * of the servers. An incrementally updated figure must equal the recount.
 */
import { isAttempt } from '../../../controller/model/node.ts'
import type { GpuReading, NodeReading } from '../../../controller/query/cluster-reading.ts'
import type { Mib } from '../../../protocol/units.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'

/** Compares the sums of these nodes with a recount. */
export function checkLedgers(world: World, nodeIds: Iterable<string>, report: Report): void {
  for (const nodeId of nodeIds) {
    const node = world.controller.cluster.nodes.get(nodeId)
    if (node === undefined) continue
    for (const gpu of node.gpus) checkGpu(gpu, report)
    const collecting = node.queue.filter(({ isCollector }) => isCollector).length
    if (collecting !== (node.collector === null ? 0 : 1))
      report(`${collecting} entries are collectors; at most one may be`, { nodeId })
    const inHost = hostMib(node)
    if (node.hostUsedMib !== inHost)
      report(`the ledger has ${node.hostUsedMib} MiB in host memory; the recount is ${inHost}`, { nodeId })
    const promised = node.gpus.reduce((sum, gpu) => sum + promisedMib(gpu), 0)
    if (node.hostPromisedMib !== promised)
      report(`the ledger promises ${node.hostPromisedMib} MiB of host memory; the recount is ${promised}`, {
        nodeId,
      })
  }
}

function checkGpu(gpu: GpuReading, report: Report): void {
  const counted = countOf(gpu)
  for (const [name, mib] of Object.entries(counted)) {
    const booked = gpu[name as keyof typeof counted]
    if (booked !== mib)
      report(`GPU ${gpu.index}: ${name} is ${booked} in the ledger; the recount is ${mib}`, {
        nodeId: gpu.node.id,
      })
  }
}

function countOf(gpu: GpuReading) {
  const counted = {
    noswapMib: 0,
    swappableMib: 0,
    noswapResidentMib: 0,
    swappableResidentMib: 0,
    movingOutMib: 0,
    largestSwappableMib: 0,
  }
  const commit = (mib: Mib, isNoswap: boolean): void => {
    counted[isNoswap ? 'noswapMib' : 'swappableMib'] += mib
    if (!isNoswap) counted.largestSwappableMib = Math.max(counted.largestSwappableMib, mib)
  }
  for (const { demandMib, residualMib, noswap, residency } of gpu.placements) {
    const movableMib = demandMib - residualMib
    commit(movableMib, noswap === 1)
    commit(residualMib, true)
    counted.noswapResidentMib += residualMib
    if (residency !== 'swapped_out')
      counted[noswap === 1 ? 'noswapResidentMib' : 'swappableResidentMib'] += movableMib
    if (residency === 'swapping_out') counted.movingOutMib += movableMib
  }
  for (const { needMib, task } of gpu.pendingClaimants) commit(needMib, task.spec.noswap === 1)
  for (const { gpus, vramMib } of gpu.node.quarantine) {
    if (!gpus.includes(gpu.index)) continue
    commit(vramMib, true)
    counted.noswapResidentMib += vramMib
  }
  return counted
}

function promisedMib(gpu: GpuReading): Mib {
  return gpu.noswapMib + gpu.swappableMib > gpu.capacityMib ? gpu.swappableMib : 0
}

function hostMib(node: NodeReading): Mib {
  let mib = 0
  for (const placement of new Set(node.gpus.flatMap((gpu) => [...gpu.placements]))) {
    const isInHost = placement.residency !== 'none' && placement.residency !== 'resident'
    if (isInHost) mib += (placement.demandMib - placement.residualMib) * placement.gpus.length
  }
  return mib
}

/**
 * In a world without faults, controller and servers agree between two instants on every task that has
 * started.
 */
export function checkAgreement(world: World, report: Report): void {
  for (const { spec, placement } of world.controller.views.openTasks()) {
    if (placement === null || placement.startedAt === null) continue
    const attempt = world.fleet.servers.get(placement.node.id)?.attempts.get(spec.id)
    const theirs =
      attempt === undefined
        ? 'nothing'
        : sayingOf(attempt.residency, attempt.vramMib, attempt.residualMib, attempt.wantsGpu)
    const { residency, demandMib, residualMib, wantsGpu } = placement
    const ours = sayingOf(residency, demandMib, residualMib, wantsGpu)
    if (theirs !== ours)
      report(`the controller records ${ours}; its server reports ${theirs}`, {
        taskId: spec.id,
        nodeId: placement.node.id,
      })
  }
}

function sayingOf(residency: string, vramMib: Mib, residualMib: Mib, wantsGpu: boolean): string {
  const kept = residency === 'swapped_out' ? `, keeps ${residualMib}` : ''
  return `${residency}, ${vramMib} MiB${kept}${wantsGpu ? ', wants' : ''}`
}

/**
 * The VRAM of the devices: never more given away than there is. A task that its server knows to be in VRAM
 * has what the server counts; one that is swapped out keeps what server and controller count, or the rest is
 * foreign.
 */
export function checkDevices(world: World, report: Report): void {
  for (const [nodeId, server] of world.fleet.servers) {
    const device = world.fleet.deviceOf(nodeId)
    if (device === undefined) continue
    for (const { index, physical_mib } of device.gpus()) {
      const { mib, surplusMib } = device.usedMib(index)
      // VRAM that a task took back without an order is excluded: no order of the server can prevent that.
      const given = mib - surplusMib
      if (given > physical_mib) report(`GPU ${index} holds ${given} MiB of ${physical_mib}`, { nodeId })
    }
    for (const { taskId, residency, residentMib, residualMib } of server.attempts.values()) {
      const used = device.vramOf(taskId)
      if (used === null || (residency !== 'resident' && residency !== 'swapped_out')) continue
      const counted = residency === 'resident' ? residentMib : residualMib + used.surplusMib
      // Told to suspend again, a task may keep less than was measured at first: then too much is counted.
      const isCounted = used.mib === counted || (residency === 'swapped_out' && used.mib < residualMib)
      if (!isCounted || (residency === 'swapped_out' && residentMib !== residualMib))
        report(
          `it is ${residency} and has ${used.mib} MiB in VRAM, ${used.surplusMib} of them foreign; ` +
            `its server counts ${residentMib}, ${residualMib} of them kept`,
          { taskId, nodeId },
        )
    }
  }
}

/**
 * Nothing is left over: the attempts on the servers are those that the controller has placed there, and
 * without tasks its sums are zero. A run may end in the instant in which its last fault does: a server
 * without contact until then has not received its orders yet.
 */
export function checkLeftovers(world: World, report: Report): void {
  const { nodes, tasks } = world.controller.cluster
  for (const [nodeId, server] of world.fleet.servers) {
    if (world.faults?.isDisturbed(nodes.get(nodeId)?.name ?? '') === true) continue
    for (const { taskId, attempt } of server.attempts.values()) {
      if (nodes.get(nodeId)?.quarantine.some((one) => isAttempt(one, taskId, attempt)) === true) continue
      const placement = tasks.get(taskId)?.placement ?? null
      if (placement === null || placement.node.id !== nodeId || placement.attempt !== attempt)
        report(`attempt ${attempt} of it still runs there, but is unknown to the controller`, {
          taskId,
          nodeId,
        })
    }
  }
  for (const node of nodes.values()) {
    const isEmpty = node.gpus.every((gpu) => gpu.placements.length === 0 && gpu.pendingClaimants.length === 0)
    const left = {
      queue: node.queue.length,
      owners: node.gpus.reduce((sum, gpu) => sum + gpu.claimants.length, 0),
    }
    if (isEmpty && (left.queue > 0 || left.owners > 0))
      report(
        `no task is placed there, but ${left.queue} entries wait in its queue and ` +
          `${left.owners} have VRAM reserved`,
        {
          nodeId: node.id,
        },
      )
  }
}
