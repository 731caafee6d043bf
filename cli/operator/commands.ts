/** `headroom operator`: the components of the operator stack. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { MAX_LEASE_MS, MIN_LEASE_MS } from '../../controller/ports/leadership.ts'
import { DEFAULT_ADMISSION } from '../../operator/admission/admission-options.ts'
import { MAX_HOST_MIB } from '../../protocol/limits.ts'
import { MAX_PERCENT } from '../../operator/contract/percent.ts'
import { folder, mib, timeWithin, whole } from '../command/option-values.ts'
import { calls, repeatable, withExamples, type SetExit } from '../command/command-shape.ts'

const ADMIN = '0.0.0.0:8081'

export function addOperatorCommands(program: Command, setExit: SetExit): void {
  const operator = program
    .command('operator')
    .description('components of the operator stack for Kubernetes; the Helm chart runs them')
  withExamples(
    inCluster(
      operator
        .command('admission')
        .description('serve the webhooks that check and change pods with the label gpu-runtime'),
    )
      .option('--listen <address:port>', 'HTTPS address for requests from the API server', '0.0.0.0:8443')
      .option('--admin <address:port>', 'address of /metrics, /livez and /readyz', ADMIN)
      .option('--secret <name>', 'name of the Secret for the certificates', 'headroom-admission')
      .option('--service <name>', 'name of the Service that the API server calls', 'headroom-admission')
      .option('--configuration <name>', 'name of both webhook configurations', 'headroom-admission')
      .option('--dns-name <name>', 'additional name in the certificate; may be repeated', repeatable, [])
      .addOption(
        new Option(
          '--swap-memory <how>',
          'what to do if the memory limit of a swappable pod is below ' + 'its VRAM',
        )
          .choices(['raise', 'require', 'ignore'])
          .default(DEFAULT_ADMISSION.swapMemory),
      )
      .option(
        '--helper-image <image>',
        'image of the helper that runs the probes of swappable pods; without it, pods with liveness or ' +
          'startup probes are not swapped',
      )
      .option('--runtime-class <name>', 'RuntimeClass for GPU pods without one')
      .addOption(overcommit())
      .option('--operator <host:port>', 'address on which the operator answers, for forecasts of policies')
      .option('--certificates <folder>', 'folder with ca.crt, tls.crt and tls.key, to call the operator')
      .option('--observe', 'only warn about what would be changed or rejected'),
    'headroom operator admission --namespace headroom --kubeconfig ~/.kube/config',
  ).action(calls(setExit, () => import('./admission.ts'), 'admission'))
  addRun(operator, setExit)
  addAgent(operator, setExit)
  addUninstall(operator, setExit)
}

function addAgent(operator: Command, setExit: SetExit): void {
  withExamples(
    operator
      .command('agent')
      .description(
        'swap pods on this node as directed by the operator; requires no permissions in the cluster',
      )
      .option('--operator <host:port>', 'address on which the operator listens for agents')
      .option('--certificates <folder>', 'folder with ca.crt, tls.crt and tls.key')
      .option('--token <file>', 'ServiceAccount token for the audience headroom; identifies the node')
      .requiredOption('--state <folder>', 'folder for the list of swapped-out pods; must outlive the agent')
      .option('--node <name>', 'name of this node (default: NODE_NAME)')
      .option('--cgroups <folder>', 'cgroup hierarchy of the host', '/sys/fs/cgroup')
      .addOption(
        new Option('--device <kind>', 'kind of GPUs of this node')
          .choices(['auto', 'nvidia', 'process'])
          .default('auto'),
      )
      .option('--inventory <file>', 'file that declares the GPUs for --device process')
      .option(
        '--host-swap-mib <size>',
        'host memory for swapped-out pods (default: half of the host memory, or the value in the inventory)',
        mib(0, MAX_HOST_MIB),
      )
      .addOption(
        new Option('--idle-after <time>', 'time without measured GPU use after which a pod is idle')
          .argParser(timeWithin(1_000, 3_600_000))
          .default(5_000, '5s'),
      )
      .option('--admin <address:port>', 'address of /metrics, /livez and /readyz', ADMIN)
      .option('--release', 'swap every pod in, then exit; run this before removing the agent')
      .option('--stay', 'with --release: keep running; /readyz succeeds once every pod is swapped in'),
    'headroom operator agent --operator headroom-extender.headroom.svc:8444 ' +
      '--certificates /etc/headroom/certificates --token /etc/headroom/token/token --state /var/lib/headroom',
  ).action(calls(setExit, () => import('./agent.ts'), 'agent'))
}

function addUninstall(operator: Command, setExit: SetExit): void {
  withExamples(
    inCluster(
      operator
        .command('uninstall')
        .description('prepare to uninstall Headroom: swap in all pods, and release the waiting ones'),
    )
      .option('--agents <name>', 'DaemonSet of the agents', 'headroom-agent')
      .option('--configuration <name>', 'name of the webhook configurations to remove', 'headroom-admission')
      .addOption(
        new Option(
          '--wait <time>',
          'maximum time to wait for swapped-out pods; the command then fails and lists the remaining nodes',
        )
          .argParser(timeWithin(1_000, 86_400_000))
          .default(240_000, '240s'),
      ),
    'headroom operator uninstall --namespace headroom --kubeconfig ~/.kube/config',
  ).action(calls(setExit, () => import('./uninstall.ts'), 'uninstall'))
}

function addRun(operator: Command, setExit: SetExit): void {
  withExamples(
    inCluster(
      operator
        .command('run')
        .description('place pods; one replica is the leader and responds to the Kubernetes scheduler'),
    )
      .option('--listen <address:port>', 'HTTPS address for requests from the scheduler', '0.0.0.0:8443')
      .option('--agents <address:port>', 'HTTPS address for requests from agents', '0.0.0.0:8444')
      .option('--admin <address:port>', 'address of /metrics, /livez and /readyz', ADMIN)
      .option('--name <name>', 'name of this replica (default: POD_NAME, or the host name)')
      .option('--lease-name <name>', 'name of the Lease for leader election', 'headroom-operator')
      .addOption(
        new Option('--lease <time>', 'time without renewal after which another replica becomes the leader')
          .argParser(timeWithin(MIN_LEASE_MS, MAX_LEASE_MS))
          .default(15_000, '15s'),
      )
      .addOption(overcommit())
      .addOption(
        new Option(
          '--probe <time>',
          'time after which a swapped-out pod is swapped in to check whether it has work',
        )
          .argParser(timeWithin(1_000, 86_400_000))
          .default(60_000, '60s'),
      )
      .option('--observe', 'only report the decisions, without changing pods')
      .option('--recording <folder>', 'record the inputs of each term, for `headroom sim redecide`', folder)
      .option('--service <name>', 'name of the Service that the scheduler calls', 'headroom-extender')
      .option('--secret <name>', 'name of the Secret for the certificates', 'headroom-extender')
      .option(
        '--scheduler-secret <name>',
        'name of the Secret for the client certificate of the scheduler',
        'headroom-scheduler',
      )
      .option('--agent-account <name>', 'name of the ServiceAccount of the agents', 'headroom-agent')
      .option(
        '--agent-secret <name>',
        'name of the Secret for the client certificate of the agents',
        'headroom-agent',
      )
      .option(
        '--admission-secret <name>',
        'name of the Secret for the certificate with which admission asks for forecasts',
        'headroom-forecast',
      )
      .option('--dns-name <name>', 'additional name in the certificate; may be repeated', repeatable, []),
    'headroom operator run --namespace headroom --kubeconfig ~/.kube/config',
  ).action(calls(setExit, () => import('./run.ts'), 'run'))
}

function overcommit(): Option {
  return new Option('--overcommit <percent>', 'overcommit of nodes without a policy or label')
    .argParser(whole(0, MAX_PERCENT))
    .default(0)
}

function inCluster(command: Command): Command {
  return command
    .option(
      '--kubeconfig <file>',
      'kubeconfig file, for use outside the cluster (default: the ServiceAccount of the pod)',
    )
    .option('--context <name>', 'kubeconfig context (default: the current context)')
    .option('--namespace <name>', 'namespace of the stack (default: POD_NAMESPACE)')
}
