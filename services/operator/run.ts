/** `headroom operator run`: the operator, with what the scheduler of Kubernetes and the agents ask. */
import { gauge, gauges, Metrics } from '../../controller/api/metrics/metrics.ts'
import { clientCertificate, ownCertificates } from '../../operator/adapters/certificate-secret.ts'
import { AGENT_CALLER, startAgentServer } from '../../operator/adapters/agent-server.ts'
import type { CallerServer, ServerIdentity } from '../../operator/adapters/caller-server.ts'
import {
  ADMISSION_CALLER,
  SCHEDULER_CALLER,
  startExtenderServer,
} from '../../operator/adapters/extender-server.ts'
import { NodeTokens } from '../../operator/adapters/node-tokens.ts'
import { expiryOf, type OwnCertificates } from '../../operator/adapters/own-certificates.ts'
import { LEADER_LABEL } from '../../operator/contract/names.ts'
import { PODS } from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { adminServer, listenFault, listenOn } from '../admin-server.ts'
import { certificateLook, firstCertificates, keepLooking } from './certificate-looks.ts'
import { Operator, type OperatorOptions } from './operator.ts'
import { settingsRefusal } from './settings-refusal.ts'

interface Address {
  readonly host: string
  readonly port: number
}

export interface OperatorProcessOptions extends Omit<OperatorOptions, 'lease' | 'onLeading'> {
  readonly namespace: string
  readonly leaseName: string
  readonly listen: Address
  /** Where agents report. */
  readonly agents: Address
  readonly admin: Address
  /**
   * Name of the extender: of the Service, and of the Secrets with its certificates and those of the
   * scheduler.
   */
  readonly service: string
  readonly secret: string
  readonly schedulerSecret: string
  readonly agentSecret: string
  /** Name of the Secret with which admission asks for forecasts. */
  readonly admissionSecret: string
  readonly agentAccount: string
  readonly dnsNames: readonly string[]
  /** Name of the pod of this process, which is labelled while it leads; null: not in a pod. */
  readonly podName: string | null
  readonly signal: AbortSignal
  readonly now?: () => Instant
  readonly lookEveryMs?: DurationMs
}

export interface RunningOperator {
  readonly port: number
  readonly agentsPort: number
  readonly adminPort: number
  readonly operator: Operator
  stop(): Promise<void>
}

/** Returns null if it was stopped before the API server answered. @throws StartFault */
export async function startOperatorProcess(options: OperatorProcessOptions): Promise<RunningOperator | null> {
  const { api, namespace, admin, signal, onNote, now = Date.now } = options
  const onLeading = leaderLabel(options)
  const operator = new Operator({ ...options, lease: { namespace, name: options.leaseName }, onLeading })
  let certificates: OwnCertificates | null = null
  const metrics = metricsOf(operator, () => certificates, now)
  const whyNotReady = (): string | null =>
    certificates === null
      ? 'no certificate exists yet'
      : operator.isSynced
        ? null
        : 'the copies of the cluster are not complete'
  const adminHttp = adminServer(() => metrics.text(), whyNotReady, true, settingsRefusal)
  const adminPort = await listenOn(adminHttp, admin, '--admin')
  const secretNamed = (name: string) => ({ api, now, secret: { namespace, name } })
  const look = certificateLook(
    async () => {
      const own = await ownCertificates(secretNamed(options.secret), [
        `${options.service}.${namespace}.svc`,
        ...options.dnsNames,
      ])
      await clientCertificate(secretNamed(options.schedulerSecret), SCHEDULER_CALLER, own)
      await clientCertificate(secretNamed(options.agentSecret), AGENT_CALLER, own)
      await clientCertificate(secretNamed(options.admissionSecret), ADMISSION_CALLER, own)
      return own
    },
    { onNote, onFault: () => {}, onFound: (found) => (certificates = found) },
  )
  const first = await firstCertificates(look, signal)
  if (first === null) {
    adminHttp.close()
    return null
  }
  const servers = await startServers(options, operator, identityOf(first)).catch((error: Error) => {
    adminHttp.close()
    throw error
  })
  // An earlier process of this pod may have ended while it led.
  onLeading(false)
  operator.start()
  const looking = keepLooking(look, first, options, (found) => {
    for (const server of servers) server.renew(identityOf(found))
  })
  return {
    ...{ port: servers[0].port, agentsPort: servers[1].port, adminPort, operator },
    async stop() {
      await operator.stop()
      for (const server of servers) await server.close()
      await looking
      adminHttp.close()
      adminHttp.closeAllConnections()
    },
  }
}

/** @throws StartFault */
async function startServers(
  { listen, agents, onNote: log, api, now = Date.now, namespace, agentAccount }: OperatorProcessOptions,
  operator: Operator,
  identity: ServerIdentity,
): Promise<readonly [extender: CallerServer, agents: CallerServer]> {
  const { extender } = operator
  const asked = await startExtenderServer({
    ...{ ...listen, ...identity, extender, log },
    forecast: (asked) => operator.forecast(asked),
  }).catch((error: Error) => {
    throw listenFault(error, listen, '--listen')
  })
  const account = `system:serviceaccount:${namespace}:${agentAccount}`
  const tokens = new NodeTokens({ api, now, account })
  const reported = await startAgentServer({
    ...{ ...agents, ...identity, log, reported: (report) => operator.agentReported(report) },
    nodeOf: (token) => tokens.nodeOf(token),
  }).catch(async (error: Error) => {
    await asked.close()
    throw listenFault(error, agents, '--agents')
  })
  return [asked, reported]
}

function identityOf({ cert, key, authorities }: OwnCertificates): ServerIdentity {
  return { cert, key, ca: authorities }
}

/** The Service of the extender selects the pod with the label: the scheduler reaches the one that leads. */
function leaderLabel({ api, namespace, podName, onNote }: OperatorProcessOptions) {
  let last: Promise<unknown> = Promise.resolve()
  return (isLeading: boolean): void => {
    if (podName === null) return
    const body = { metadata: { labels: { [LEADER_LABEL]: isLeading ? 'true' : null } } }
    last = last
      .then(() => api.patch(PODS, { namespace, name: podName }, { type: 'merge', body }))
      .catch((error: unknown) => onNote(`the pod ${podName} is not labelled: ${errorText(error)}`))
  }
}

function metricsOf(
  operator: Operator,
  certificates: () => OwnCertificates | null,
  now: () => Instant,
): Metrics {
  const metrics = new Metrics()
  metrics.add(
    gauge('headroom_operator_leading', 'Whether this operator places pods.', () =>
      operator.isLeading ? 1 : 0,
    ),
    gauge('headroom_operator_certificate_expires_in_seconds', 'Time until the certificate expires.', () => {
      const found = certificates()
      return found === null ? null : Math.round((expiryOf(found) - now()) / 1000)
    }),
    gauges(
      'headroom_operator_pods',
      'Pods that this operator knows, while it leads.',
      ['state'],
      function* () {
        const counts = operator.placement?.controller.views.counts()
        if (counts === undefined) return
        yield { labels: ['waiting'], value: counts.pending }
        yield { labels: ['reserved'], value: counts.assigned }
        yield { labels: ['bound'], value: counts.running }
      },
    ),
  )
  return metrics
}
