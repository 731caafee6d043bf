/** `headroom operator admission`: the webhooks as a process. All replicas serve; they share a certificate. */
import { setTimeout as pause } from 'node:timers/promises'
import { Counter } from '../../controller/api/metrics/instruments.ts'
import { gauge, Metrics } from '../../controller/api/metrics/metrics.ts'
import { AdmissionServer, type AdmissionServerOptions } from '../../operator/adapters/admission-server.ts'
import { keepCertificates } from '../../operator/adapters/certificate-keeper.ts'
import { expiryOf } from '../../operator/adapters/own-certificates.ts'
import type { AdmissionOptions } from '../../operator/admission/admission-options.ts'
import type { KubeApi } from '../../operator/ports/kube-api.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { certificateLook, firstCertificates, keepLooking } from './certificate-looks.ts'
import { adminServer, listenFault, listenOn } from '../admin-server.ts'

interface Address {
  readonly host: string
  readonly port: number
}

export interface AdmissionProcessOptions {
  readonly api: KubeApi
  readonly admission: AdmissionOptions
  readonly forecast: AdmissionServerOptions['forecast']
  readonly listen: Address
  readonly admin: Address
  readonly namespace: string
  /** Names of the Secret with the certificates, of the Service, and of both configurations. */
  readonly secret: string
  readonly service: string
  readonly configuration: string
  /** Further DNS names in the certificate, for an API server that does not call by the Service. */
  readonly dnsNames: readonly string[]
  /** Ends the start while the API server is away, and the looks at the certificates. */
  readonly signal: AbortSignal
  readonly onNote: (line: string) => void
  readonly now?: () => Instant
  /** Between two looks at the certificates. */
  readonly lookEveryMs?: DurationMs
  /** Absent: as long as the API server may still call this replica. */
  readonly servesOnMs?: DurationMs
}

/**
 * The Service leads to a pod that ends until every node has heard of it, and a call that meets a closed
 * connection refuses a pod.
 */
const SERVES_ON_MS = 5_000

export interface RunningAdmission {
  readonly port: number
  readonly adminPort: number
  /** Answers the reviews that are in progress. */
  stop(): Promise<void>
}

/** Returns null if it was stopped before the API server answered. @throws StartFault */
export async function startAdmissionProcess(
  options: AdmissionProcessOptions,
): Promise<RunningAdmission | null> {
  const { api, listen, admin, namespace, service, signal, onNote, now = Date.now } = options
  const figures = new AdmissionFigures(now)
  let isServing = false
  const whyNotReady = (): string | null => (isServing ? null : 'no certificate exists yet')
  const adminHttp = adminServer(() => figures.metrics.text(), whyNotReady, true)
  const adminPort = await listenOn(adminHttp, admin, '--admin')
  const keeping = {
    ...{ api, now, configuration: options.configuration },
    secret: { namespace, name: options.secret },
    names: [`${service}.${namespace}.svc`, ...options.dnsNames],
  }
  const look = certificateLook(() => keepCertificates(keeping), {
    onNote,
    onFault: () => figures.faults.add(1),
    onFound: (found) => (figures.expiresAt = expiryOf(found)),
  })
  const certificates = await firstCertificates(look, signal)
  if (certificates === null) {
    adminHttp.close()
    return null
  }
  const server = await AdmissionServer.start({
    ...options.admission,
    ...listen,
    ...{ cert: certificates.cert, key: certificates.key, api, log: onNote, forecast: options.forecast },
    onAnswered: (path, outcome) => figures.reviews.add(1, path.slice(1), outcome),
  }).catch((error: Error) => {
    adminHttp.close()
    throw listenFault(error, listen, '--listen')
  })
  isServing = true
  const looking = keepLooking(look, certificates, options, (found) =>
    server.renew({ cert: found.cert, key: found.key }),
  )
  return {
    port: server.port,
    adminPort,
    async stop() {
      isServing = false
      await server.close(pause(options.servesOnMs ?? SERVES_ON_MS))
      await looking
      adminHttp.close()
      adminHttp.closeAllConnections()
    },
  }
}

class AdmissionFigures {
  readonly metrics = new Metrics()
  readonly reviews = new Counter({
    name: 'headroom_admission_reviews_total',
    help: 'Reviews requested by the API server; failed: the failurePolicy applied.',
    labels: ['webhook', 'outcome'],
  })
  readonly faults = new Counter({
    name: 'headroom_admission_certificate_faults_total',
    help: 'Failed checks of the certificates.',
  })
  expiresAt: Instant | null = null

  constructor(now: () => Instant) {
    this.metrics.add(
      this.reviews,
      this.faults,
      gauge('headroom_admission_certificate_expires_in_seconds', 'Time until the certificate expires.', () =>
        this.expiresAt === null ? null : Math.round((this.expiresAt - now()) / 1000),
      ),
    )
  }
}
