import type { AdmissionOptions } from '../../operator/admission/admission-options.ts'
import { askedForecast } from '../../operator/adapters/forecast-client.ts'
import { type AskedPolicy, unsimulated } from '../../operator/contract/policy-twin-lines.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { startAdmissionProcess } from '../../services/operator/admission.ts'
import { openCluster, ownNamespace, type ClusterOptions } from '../../services/operator/cluster-access.ts'
import { untilSignal } from '../../services/until-signal.ts'
import { addressOf, addressText, hostAndPort } from '../command/addresses.ts'

interface AdmissionArguments extends ClusterOptions {
  readonly namespace?: string
  readonly listen: string
  readonly admin: string
  readonly secret: string
  readonly service: string
  readonly configuration: string
  readonly dnsName: readonly string[]
  readonly swapMemory: AdmissionOptions['swapMemory']
  readonly helperImage?: string
  readonly runtimeClass?: string
  readonly overcommit: number
  readonly observe?: boolean
  readonly operator?: string
  readonly certificates?: string
}

export async function admission(given: AdmissionArguments): Promise<number> {
  const [listen, admin] = [addressOf('--listen', given.listen), addressOf('--admin', given.admin)]
  const onNote = (line: string): unknown => process.stderr.write(`headroom: ${line}\n`)
  const forecast = forecastOf(given, onNote)
  const namespace = ownNamespace(given.namespace, process.env)
  const api = openCluster(given, process.env, 'admission')
  const ended = new AbortController()
  const signalled = untilSignal().then(() => ended.abort())
  const { secret, service, configuration, swapMemory, helperImage = null } = given
  const { runtimeClass: runtimeClassName = null, observe: observes = false } = given
  const { overcommit: helmPercent } = given
  const running = await startAdmissionProcess({
    ...{ api, namespace, listen, admin, secret, service, configuration, signal: ended.signal },
    dnsNames: given.dnsName,
    admission: { observes, swapMemory, helperImage, runtimeClassName, helmPercent },
    ...{ forecast, onNote },
  })
  if (running !== null) {
    const [where, whereAdmin] = [addressText(listen, running.port), addressText(admin, running.adminPort)]
    process.stdout.write(
      `Headroom admission listens on ${where}; metrics on ${whereAdmin}; press Ctrl-C to stop\n`,
    )
    await signalled
    await running.stop()
  }
  api.close()
  return EXIT_OK
}

/** Of the operator that leads. */
function forecastOf({ operator, certificates }: AdmissionArguments, log: (line: string) => unknown) {
  if (operator === undefined) return () => Promise.resolve([unsimulated('admission knows no operator')])
  if (certificates === undefined) throw new UsageError('--operator requires --certificates.')
  const options = { ...hostAndPort('--operator', operator), certificates, log }
  return (asked: AskedPolicy) => askedForecast(options, asked)
}
