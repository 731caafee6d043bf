/** Percentage, reserve and idle period, from policies, labels and the Helm value. */
import type { Controller } from '../../controller/controller.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import { nodeOvercommit, type NodeOvercommit, policyOfNode } from '../../operator/contract/overcommit.ts'
import type { NodeLimits } from '../../operator/placing/claims.ts'
import type { Percent } from '../../protocol/units.ts'
import type { ClusterObjects } from './cluster-objects.ts'
import { BY } from './pod-queue.ts'

export type SettingSources = Pick<ClusterObjects, 'node' | 'nodePolicies' | 'clusterPolicy'>

export class NodeSettings {
  readonly #objects: SettingSources
  readonly #helmPercent: Percent
  readonly #probeSeconds: number

  constructor(objects: SettingSources, helmPercent: Percent, probeSeconds: number) {
    this.#objects = objects
    this.#helmPercent = helmPercent
    this.#probeSeconds = probeSeconds
  }

  overcommitOf(nodeName: string): NodeOvercommit {
    return nodeOvercommit({
      node: this.#objects.node(nodeName)?.metadata ?? { name: nodeName },
      nodePolicies: this.#objects.nodePolicies(),
      clusterPolicy: this.#objects.clusterPolicy(),
      helmPercent: this.#helmPercent,
    })
  }

  limitsOf(nodeName: string): NodeLimits {
    const own = policyOfNode(nodeName, this.#objects.nodePolicies())?.spec.safetyReserveMib
    const { safetyReserveMib = DEFAULT_CONFIG.safety_reserve_mib } = this.#objects.clusterPolicy()?.spec ?? {}
    return { percent: this.overcommitOf(nodeName).percent, reserveMib: own ?? safetyReserveMib }
  }

  config(): Partial<ConfigFields> {
    const { idleSwapOutSeconds = DEFAULT_CONFIG.idle_swap_out_seconds } =
      this.#objects.clusterPolicy()?.spec ?? {}
    return { idle_swap_out_seconds: idleSwapOutSeconds, swap_in_probe_seconds: this.#probeSeconds }
  }

  /** A node takes its limits once it has joined. */
  bringTo(
    { views, commands }: Controller,
    nodes: Iterable<{ readonly id: string; readonly name: string }>,
  ): void {
    for (const { id, name } of nodes) {
      const { percent: overcommitPercent, reserveMib } = this.limitsOf(name)
      const node = views.node(id)
      if (node === undefined) continue
      if (node.overcommitOverride !== overcommitPercent || node.reserveOverrideMib !== reserveMib)
        commands.putNodeConfig(id, { overcommitPercent, reserveMib }, BY, () => {})
    }
    const config = this.config()
    if (config.idle_swap_out_seconds !== views.config().fields.idle_swap_out_seconds)
      commands.putConfig(config, BY, () => {})
  }
}
