/**
 * Version, ranges, maximum lengths and defaults of the contract. Lengths of texts are in UTF-16 code units.
 */

export const PROTOCOL_VERSION = 1

/** Maximum length of an encoded message (docs/protocol.md, principle 3). */
export const MAX_MESSAGE_BYTES = 256 * 1024
/** Attempts that live on a node plus unacknowledged attempts that ended there: the capacity of a snapshot. */
export const MAX_ATTEMPTS_PER_NODE = 1024
/** Entries of an outbox in one message. */
export const MAX_EVENTS = 256
/** Length of a device's detail about the end of a task. */
export const MAX_DETAIL_LENGTH = 512
export const MAX_REFUSAL_CODE_LENGTH = 40
/** Tasks that one node prepares, or has prepared, before their start. */
export const MAX_PREPARATIONS_PER_NODE = 8
/** Images of waiting tasks that a node is asked about, and that it reports. */
export const MAX_REPORTED_IMAGES = 32
/** Bytes of a task's output in one message; base64 adds a third. */
export const MAX_LOG_BYTES = 128 * 1024
/** Length of the reason in an answer to a client; a longer one is cut. */
export const MAX_ANSWER_REASON_LENGTH = 1000

/** GPUs of one node. */
export const MAX_GPUS = 16
/** 16 TiB on one GPU. */
export const MAX_VRAM_MIB = 16_777_216
/** 1 PiB on one node. */
export const MAX_HOST_MIB = 1_073_741_824
/** 16 TiB/s. */
export const MAX_HOST_LINK_MIB_PER_S = 16_777_216
export const MAX_RESERVE_MIB = 1_048_576
export const MAX_HEARTBEAT_MS = 60_000
export const MAX_RUN_LEASE_MS = 86_400_000
/** A sender needs some thousand years to reach it, and the next number is still exact. */
export const MAX_COUNT = 2_251_799_813_685_248
export const MAX_ATTEMPT = 2_147_483_647

export const MAX_ID_LENGTH = 200
/** Minimum characters at the beginning of a task's id that stand for the id. */
export const MIN_TASK_ID_PREFIX = 4
/** Length of the name of a task, and of its owner, in messages to a node. */
export const MAX_RECORDED_NAME_LENGTH = 1000
/**
 * More GPUs than any node has: such a task is accepted, and waits with EXCEEDS_NODE_GPU_COUNT, as it does in
 * a trace.
 */
export const MAX_TASK_GPUS = 1024
export const MAX_GROUPS = 32
export const MAX_LABELS = 64
export const MAX_ARGUMENTS = 256
export const MAX_ARGUMENT_LENGTH = 4096
/** A reference to a container image: a name of 255, a tag of 128 and a digest of SHA-256 fit. */
export const MAX_IMAGE_LENGTH = 512
/** Ports that a task declares. */
export const MAX_PORTS = 16
export const MAX_PORT_NAME_LENGTH = 63
/** An IPv6 address in brackets with its zone, and a port. */
export const MAX_ADDRESS_LENGTH = 80
export const MAX_HOOK_PATH_LENGTH = 1_024
/** Data folders that one task mounts. */
export const MAX_MOUNTS = 8
/** Data folders that one server offers. */
export const MAX_OFFERED_MOUNTS = 16
export const MAX_MOUNT_NAME_LENGTH = 32
/** A path on a host or in a folder of a task. */
export const MAX_PATH_LENGTH = 4096
/** Files in one answer to `list_files`. */
export const MAX_LISTED_FILES = 500
/** Bytes of a file in one message; base64 adds a third. */
export const MAX_FILE_BYTES = 128 * 1024
/** Bytes of a channel in one message; base64 adds a third. */
export const MAX_CHANNEL_BYTES = 128 * 1024
/** Arguments of a command that is added to a task, in bytes. */
export const MAX_CHANNEL_COMMAND_BYTES = 32 * 1024
/** Rows and columns of a terminal. */
export const MAX_WINDOW_SIZE = 65_535
/** Bytes of a chunk of an uploaded file, and of a manifest. */
export const CHUNK_BYTES = 4 * 1024 * 1024
/** Files, folders and links of an uploaded folder. */
export const MAX_WORKDIR_ENTRIES = 20_000
/** Bytes of an uploaded folder that any configuration may allow: 64 GiB. */
export const MAX_WORKDIR_BYTES = 64 * 1024 * 1024 * 1024
/** A program of any size runs in it; engines refuse less than 6 MiB. */
export const MIN_MEMORY_MIB = 16
export const MAX_CPUS = 4096
export const MIN_PIDS = 16
/** The most that Linux numbers. */
export const MAX_PIDS = 4_194_304
/** Environment variables of a task, secrets included. */
export const MAX_VARIABLES = 512
export const MAX_VARIABLE_NAME_LENGTH = 255
export const VARIABLE_NAME_PATTERN = `^[A-Za-z_][A-Za-z0-9_]{0,${MAX_VARIABLE_NAME_LENGTH - 1}}$`
/** Names and values of the environment variables of a task together, in bytes of JSON. */
export const MAX_ENVIRONMENT_LENGTH = 65_536
/** Features in the hello of a GPU server: the known ones (`units.ts`) and those of later versions. */
export const MAX_FEATURES = 64
export const MAX_FEATURE_LENGTH = 40
export const MAX_RUNTIME_SECONDS = 31_536_000
export const MAX_STOP_GRACE_SECONDS = 3600
export const MAX_REQUEUES = 1000
export const MAX_IDLE_SWAP_OUT_SECONDS = 86_400

/** The fields of a task that a request may leave out. */
export const TASK_DEFAULTS = {
  gpuCount: 1,
  gpuMode: 'shared',
  noswap: 0,
  priority: 2,
  onNodeLoss: 'wait',
} as const

/** Path of a Unix socket, in bytes: the kernel's limit without the terminating zero. */
export const MAX_SOCKET_PATH_LENGTH = 107
