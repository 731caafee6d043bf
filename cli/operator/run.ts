import { hostname } from 'node:os'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { openCluster, ownNamespace, type ClusterOptions } from '../../services/operator/cluster-access.ts'
import { termRecorder } from '../../services/operator/term-recorder.ts'
import { startOperatorProcess } from '../../services/operator/run.ts'
import { untilSignal } from '../../services/until-signal.ts'
import { addressOf, addressText } from '../command/addresses.ts'

interface RunArguments extends ClusterOptions {
  readonly namespace?: string
  readonly listen: string
  readonly agents: string
  readonly admin: string
  readonly name?: string
  readonly leaseName: string
  readonly lease: number
  readonly overcommit: number
  readonly probe: number
  readonly observe?: boolean
  readonly recording?: string
  readonly service: string
  readonly secret: string
  readonly schedulerSecret: string
  readonly agentSecret: string
  readonly admissionSecret: string
  readonly agentAccount: string
  readonly dnsName: readonly string[]
}

export async function run(given: RunArguments): Promise<number> {
  const [listen, admin] = [addressOf('--listen', given.listen), addressOf('--admin', given.admin)]
  const agents = addressOf('--agents', given.agents)
  const namespace = ownNamespace(given.namespace, process.env)
  const api = openCluster(given, process.env, 'operator')
  const podName = process.env['POD_NAME'] || null
  const ended = new AbortController()
  const signalled = untilSignal().then(() => ended.abort())
  const { leaseName, lease: leaseMs, overcommit: helmPercent, service, secret } = given
  const { schedulerSecret, agentSecret, admissionSecret, agentAccount } = given
  const onNote = (line: string): unknown => process.stderr.write(`headroom: ${line}\n`)
  const running = await startOperatorProcess({
    ...{ api, namespace, listen, agents, admin, leaseName, leaseMs, helmPercent, service },
    observes: given.observe === true,
    ...(given.recording === undefined ? {} : { record: termRecorder(given.recording, onNote) }),
    ...{ secret, schedulerSecret, agentSecret, admissionSecret, agentAccount },
    probeSeconds: Math.ceil(given.probe / 1000),
    ...{ dnsNames: given.dnsName, podName, name: given.name ?? podName ?? hostname(), signal: ended.signal },
    onNote,
  })
  if (running !== null) {
    const [where, whereAdmin] = [addressText(listen, running.port), addressText(admin, running.adminPort)]
    const whereAgents = addressText(agents, running.agentsPort)
    process.stdout.write(
      `Headroom operator listens on ${where}, for agents on ${whereAgents}; metrics on ${whereAdmin}; ` +
        'press Ctrl-C to stop\n',
    )
    await signalled
    await running.stop()
  }
  api.close()
  return EXIT_OK
}
