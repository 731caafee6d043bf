/**
 * A real etcd and kube-apiserver on free ports of the loopback interface, with RBAC, certificates of their
 * own and the resources of the operator stack. `make kubernetes-tools` builds the programs.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { KubeClient } from '../../../operator/adapters/kube-client.ts'
import { kubeconfigConnection } from '../../../operator/adapters/kube-connection.ts'
import { CRD_FOLDER } from '../../../tools/reference/custom-resources.ts'
import { afterEachFile } from '../endings.ts'
import { freePort } from '../free-port.ts'
import { type Environment, Member } from '../live-cluster.ts'

export const TOOLS = join(import.meta.dirname, '../../../.tools')
const CHART = join(import.meta.dirname, '../../../deploy/helm/headroom')
const SCHEDULER_CONFIG = join(CHART, 'files/scheduler.yaml')
const SCHEDULER_TEMPLATE = join(CHART, 'templates/scheduler.yaml')
const START_WITHIN_MS = 120_000
/** Characters of each program's output in an error. */
const OUTPUT_SHOWN = 2_000
const PROGRAMS = ['etcd', 'kube-apiserver', 'kubectl']

/** Null when the programs exist; otherwise the reason to skip what needs them. */
export function whyNoControlPlane(...others: readonly string[]): string | null {
  const missing = [...PROGRAMS, ...others].filter((name) => !existsSync(join(TOOLS, name)))
  if (missing.length === 0) return null
  const why = `${missing.join(', ')} not found in .tools: run \`make kubernetes-tools\` (needs Go)`
  process.stderr.write(`skipped: ${why}\n`)
  return why
}

/** Who asked for what, of accounts in namespaces of tests. */
const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  rules: [
    { level: 'None', userGroups: ['system:masters', 'system:nodes'] },
    { level: 'Metadata', userGroups: ['system:serviceaccounts'] },
  ],
}

const open = new Set<ControlPlane>()
afterEachFile(async () => {
  await Promise.all([...open].map((plane) => plane.stop()))
})

export interface ControlPlaneOptions {
  /** etcd keeps every version of every object, as JSON: the history of the cluster can be read afterwards. */
  readonly keepsHistory?: boolean
  /**
   * Addresses of Services, which this machine can reach. Each pod gets the token of its ServiceAccount then,
   * as in a real cluster.
   */
  readonly services?: { readonly range: string; readonly apiAddress: string }
}

/** No process runs there, and no controller creates the accounts that pods would get. */
const NO_SERVICES = { range: '10.0.0.0/24', apiAddress: '10.0.0.1' }

const HISTORY = ['--storage-media-type=application/json', '--etcd-compaction-interval=0']

export class ControlPlane {
  readonly folder: string
  readonly server: string
  readonly etcdUrl: string
  readonly etcd: Member
  readonly apiServer: Member
  readonly #members: Member[] = []
  readonly #clients: KubeClient[] = []

  private constructor(
    folder: string,
    ports: Readonly<Record<'etcd' | 'peer' | 'api', number>>,
    { keepsHistory = false, services = NO_SERVICES }: ControlPlaneOptions,
  ) {
    this.folder = folder
    this.server = `https://127.0.0.1:${ports.api}`
    const etcdUrl = (this.etcdUrl = `http://127.0.0.1:${ports.etcd}`)
    const peerUrl = `http://127.0.0.1:${ports.peer}`
    this.etcd = this.#member('etcd', [
      ...[`--data-dir=${join(folder, 'etcd')}`, '--unsafe-no-fsync', '--log-level=error'],
      ...[`--listen-client-urls=${etcdUrl}`, `--advertise-client-urls=${etcdUrl}`],
      ...[`--listen-peer-urls=${peerUrl}`, `--initial-advertise-peer-urls=${peerUrl}`],
      `--initial-cluster=default=${peerUrl}`,
    ])
    this.apiServer = this.#member('kube-apiserver', [
      ...[`--etcd-servers=${etcdUrl}`, `--secure-port=${ports.api}`, '--bind-address=127.0.0.1'],
      ...[`--cert-dir=${folder}`, `--service-cluster-ip-range=${services.range}`],
      '--allow-privileged=true',
      ...[`--tls-cert-file=${join(folder, 'server.pem')}`],
      `--tls-private-key-file=${join(folder, 'server.key')}`,
      `--client-ca-file=${join(folder, 'ca.pem')}`,
      `--service-account-key-file=${join(folder, 'account.key')}`,
      `--service-account-signing-key-file=${join(folder, 'account.key')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      '--authorization-mode=RBAC',
      ...[`--audit-log-path=${this.auditLog}`, `--audit-policy-file=${join(folder, 'audit-policy')}`],
      ...(services === NO_SERVICES ? ['--disable-admission-plugins=ServiceAccount'] : []),
      ...(keepsHistory ? HISTORY : []),
    ])
  }

  /** Returns once it is ready and serves the operator's resources. */
  static async start(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    const folder = mkdtempSync(join(tmpdir(), 'headroom-kubernetes-'))
    const ports = { etcd: await freePort(), peer: await freePort(), api: await freePort() }
    const plane = new ControlPlane(folder, ports, options)
    open.add(plane)
    makeKeys(folder, (options.services ?? NO_SERVICES).apiAddress)
    writeFileSync(join(folder, 'audit-policy'), JSON.stringify(AUDIT_POLICY))
    writeFileSync(plane.kubeconfig, kubeconfigText(folder, plane.server))
    await plane.etcd.start(() => true)
    await plane.startApiServer()
    await plane.#untilReady()
    return plane
  }

  /** Resolves once it is ready, also after it has been killed. */
  startApiServer(): Promise<void> {
    return this.apiServer.start(() =>
      this.kubectl(['get', '--raw', '/readyz']).then(
        () => true,
        () => false,
      ),
    )
  }

  get auditLog(): string {
    return join(this.folder, 'audit.log')
  }

  get kubeconfig(): string {
    return join(this.folder, 'kubeconfig')
  }

  client(): KubeClient {
    const client = new KubeClient(kubeconfigConnection(this.kubeconfig), { userAgent: 'headroom-test' })
    this.#clients.push(client)
    return client
  }

  /**
   * The output of kubectl; rejects with its errors if it fails. It does not block, because the API server may
   * call a webhook of this process meanwhile.
   */
  kubectl(args: readonly string[], input?: string): Promise<string> {
    const all = [`--kubeconfig=${this.kubeconfig}`, ...args]
    // kubectl caches what the server offers.
    const env = { ...process.env, HOME: this.folder }
    return new Promise((resolve, reject) => {
      const child = execFile(join(TOOLS, 'kubectl'), all, { env }, (error, stdout) =>
        error === null ? resolve(stdout) : reject(new Error(error.message, { cause: error })),
      )
      // It may end before it has read everything; its exit says why.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input ?? '')
    })
  }

  async apply(items: readonly object[]): Promise<void> {
    await this.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  }

  /**
   * The official scheduler with the configuration of the chart, and this extender.
   * @param replicas more than one elect a leader among them
   */
  async startScheduler(
    extenderPort: number,
    certificates: Readonly<Record<string, string>>,
    replicas = 1,
  ): Promise<readonly Member[]> {
    for (const [name, base64] of Object.entries(certificates))
      writeFileSync(join(this.folder, `scheduler-${name}`), Buffer.from(base64, 'base64'))
    const config = readFileSync(SCHEDULER_CONFIG, 'utf8')
      .replace('leaderElect: true', `leaderElect: ${replicas > 1}`)
      .replace('https://headroom-extender.NAMESPACE.svc', `https://localhost:${extenderPort}`)
      .replaceAll('/etc/headroom/certificates/', join(this.folder, 'scheduler-'))
      .replaceAll('NAMESPACE', 'default')
      .replace('clientConnection:', `clientConnection:\n  kubeconfig: ${this.kubeconfig}`)
    const file = join(this.folder, 'scheduler.yaml')
    writeFileSync(file, config)
    const env = schedulerEnvironment()
    return Promise.all(
      Array.from({ length: replicas }, () => this.#startClient('kube-scheduler', [`--config=${file}`], env)),
    )
  }

  /** The scheduler of pods that name no other one. Its usual limit is 50 requests a second. */
  startDefaultScheduler(): Promise<Member> {
    return this.#startClient('kube-scheduler', [
      ...[`--kubeconfig=${this.kubeconfig}`, '--leader-elect=false'],
      ...['--kube-api-qps=5000', '--kube-api-burst=5000'],
    ])
  }

  /** It runs Jobs and Deployments, removes what has no owner, and taints nodes that are silent. */
  startControllerManager(): Promise<Member> {
    return this.#startClient('kube-controller-manager', [
      ...[`--kubeconfig=${this.kubeconfig}`, '--leader-elect=false', '--use-service-account-credentials'],
      `--service-account-private-key-file=${join(this.folder, 'account.key')}`,
      `--root-ca-file=${join(this.folder, 'ca.pem')}`,
    ])
  }

  /** One program that calls the API server. */
  async #startClient(program: string, args: readonly string[], env: Environment = {}): Promise<Member> {
    const command = [
      join(TOOLS, program),
      ...[`--secure-port=${await freePort()}`, '--bind-address=127.0.0.1', `--cert-dir=${this.folder}`],
      ...[`--authentication-kubeconfig=${this.kubeconfig}`, `--authorization-kubeconfig=${this.kubeconfig}`],
      ...args,
    ]
    const member = this.addMember(program, command, env)
    await member.start(() => true)
    return member
  }

  /** A request as an administrator. Resolves with the answer; rejects unless its code is 2xx. */
  raw(method: string, path: string, body: object = {}): Promise<string> {
    const read = (name: string): string => readFileSync(join(this.folder, name), 'utf8')
    const identity = { ca: read('ca.pem'), cert: read('admin.pem'), key: read('admin.key') }
    const text = JSON.stringify(body)
    // Node sends the body of a DELETE without its length unless told.
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    return new Promise((resolve, reject) => {
      const sent = request(new URL(path, this.server), { method, headers, ...identity }, (answer) => {
        let told = ''
        answer.on('data', (chunk: Buffer) => (told += chunk.toString()))
        answer.on('error', reject)
        answer.on('end', () => {
          const code = answer.statusCode ?? 0
          if (code >= 200 && code < 300) resolve(told)
          else reject(new Error(`${method} ${path}: ${code} ${told}`))
        })
      })
      sent.on('error', reject)
      sent.end(text)
    })
  }

  /** The last lines of its programs. */
  get output(): string {
    return this.#members.map(({ output }) => output.slice(-OUTPUT_SHOWN)).join('')
  }

  async stop(): Promise<void> {
    open.delete(this)
    for (const client of this.#clients) client.close()
    for (const member of this.#members.toReversed()) await member.end()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }

  /** A process of this control plane: it ends with it. */
  addMember(name: string, command: readonly string[], env: Environment = {}): Member {
    const member = new Member(name, command, env)
    this.#members.push(member)
    return member
  }

  #member(program: string, args: readonly string[]): Member {
    return this.addMember(program, [join(TOOLS, program), ...args])
  }

  async #untilReady(): Promise<void> {
    const until = Date.now() + START_WITHIN_MS
    const untilDone = async (args: readonly string[]): Promise<void> => {
      for (;;) {
        try {
          await this.kubectl(args)
          return
        } catch (error) {
          if (Date.now() > until)
            throw new Error(`the API server is not ready: ${this.output}`, { cause: error })
          await delay(200)
        }
      }
    }
    await untilDone(['get', 'namespace', 'default'])
    await this.kubectl(['apply', '-f', CRD_FOLDER])
    await this.kubectl(['wait', '--for=condition=Established', '--timeout=60s', '-f', CRD_FOLDER])
    // Discovery and OpenAPI follow a moment later.
    await untilDone(['get', 'clustergpupolicies,vendornodepolicies,gpunodes'])
  }
}

/** As the chart sets it. */
function schedulerEnvironment(): Environment {
  const template = readFileSync(SCHEDULER_TEMPLATE, 'utf8')
  const found = [...template.matchAll(/\{ name: (HTTP2_\w+), value: "(\d+)" \}/g)]
  if (found.length === 0) throw new Error(`${SCHEDULER_TEMPLATE} sets no variable`)
  return Object.fromEntries(found.map(([, name, value]) => [name, value]))
}

function makeKeys(folder: string, apiAddress: string): void {
  const at = (name: string): string => join(folder, name)
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { stdio: 'pipe' })
  }
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    ...['req', '-x509', ...ec, '-days', '2', '-subj', '/CN=test authority'],
    ...['-keyout', at('ca.key'), '-out', at('ca.pem')],
  )
  const signed = (name: string, subject: string, extensions: string): void => {
    writeFileSync(at(`${name}.ext`), extensions)
    openssl('req', ...ec, '-subj', subject, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`))
    openssl(
      ...['x509', '-req', '-in', at(`${name}.csr`), '-CA', at('ca.pem'), '-CAkey', at('ca.key')],
      ...['-CAcreateserial', '-days', '2', '-extfile', at(`${name}.ext`), '-out', at(`${name}.pem`)],
    )
  }
  const names = `IP:127.0.0.1,IP:${apiAddress},DNS:localhost`
  const server = `subjectAltName=${names}\nextendedKeyUsage=serverAuth\n`
  signed('server', '/CN=kube-apiserver', server)
  signed('admin', '/O=system:masters/CN=admin', 'extendedKeyUsage=clientAuth\n')
  openssl('genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', at('account.key'))
}

function kubeconfigText(folder: string, server: string): string {
  const data = (name: string): string => readFileSync(join(folder, name)).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': data('ca.pem') } }],
    users: [
      {
        name: 'admin',
        user: { 'client-certificate-data': data('admin.pem'), 'client-key-data': data('admin.key') },
      },
    ],
  })
}
