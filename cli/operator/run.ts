import { hostname } from 'node:os'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { openCluster, ownNamespace, type ClusterOptions } from '../../services/operator/cluster-access.ts'
import { startOperatorProcess } from '../../services/operator/run.ts'
import { untilSignal } from '../../services/until-signal.ts'
import { addressOf, addressText } from '../command/addresses.ts'

interface RunArguments extends ClusterOptions {
  readonly namespace?: string
  readonly listen: string
  readonly admin: string
  readonly name?: string
  readonly leaseName: string
  readonly lease: number
  readonly overcommit: number
  readonly service: string
  readonly secret: string
  readonly schedulerSecret: string
  readonly dnsName: readonly string[]
}

export async function run(given: RunArguments): Promise<number> {
  const [listen, admin] = [addressOf('--listen', given.listen), addressOf('--admin', given.admin)]
  const namespace = ownNamespace(given.namespace, process.env)
  const api = openCluster(given, process.env, 'operator')
  const podName = process.env['POD_NAME'] || null
  const ended = new AbortController()
  const signalled = untilSignal().then(() => ended.abort())
  const { leaseName, lease: leaseMs, overcommit: helmPercent, service, secret, schedulerSecret } = given
  const running = await startOperatorProcess({
    ...{ api, namespace, listen, admin, leaseName, leaseMs, helmPercent, service, secret, schedulerSecret },
    ...{ dnsNames: given.dnsName, podName, name: given.name ?? podName ?? hostname(), signal: ended.signal },
    onNote: (line) => process.stderr.write(`headroom: ${line}\n`),
  })
  if (running !== null) {
    const [where, whereAdmin] = [addressText(listen, running.port), addressText(admin, running.adminPort)]
    process.stdout.write(`Headroom operator listens on ${where}; metrics on ${whereAdmin}; Ctrl-C stops it\n`)
    await signalled
    await running.stop()
  }
  api.close()
  return EXIT_OK
}
