// Code generated from rpc.proto by build/etcd-rpc.ts and ts-proto. Do not edit it.
// source: rpc.proto

/* eslint-disable */
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientOptions,
  type ClientUnaryCall,
  type handleBidiStreamingCall,
  type handleUnaryCall,
  makeGenericClientConstructor,
  type Metadata,
  type ServiceError,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";

export const protobufPackage = "etcdserverpb";

export const protobufFileName = "rpc.proto";

export const AlarmType = { NO_ALARM: 0, NOSPACE: 1, CORRUPT: 2 } as const;

export type AlarmType = typeof AlarmType[keyof typeof AlarmType];

export namespace AlarmType {
  export type NO_ALARM = typeof AlarmType.NO_ALARM;
  export type NOSPACE = typeof AlarmType.NOSPACE;
  export type CORRUPT = typeof AlarmType.CORRUPT;
}

export interface ResponseHeader {
  readonly clusterId: string;
  readonly memberId: string;
  readonly revision: number;
}

export interface KeyValue {
  readonly key: Buffer;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly value: Buffer;
}

export interface RangeRequest {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
  readonly limit: number;
  readonly revision: number;
  readonly keysOnly: boolean;
  readonly countOnly: boolean;
}

export interface RangeResponse {
  readonly header: ResponseHeader | undefined;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: number;
}

export interface PutRequest {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly lease: number;
}

export interface PutResponse {
}

export interface DeleteRangeRequest {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
}

export interface DeleteRangeResponse {
  readonly deleted: number;
}

export interface RequestOp {
  readonly requestRange?: RangeRequest | undefined;
  readonly requestPut?: PutRequest | undefined;
  readonly requestDeleteRange?: DeleteRangeRequest | undefined;
}

export interface ResponseOp {
  readonly responseRange?: RangeResponse | undefined;
  readonly responsePut?: PutResponse | undefined;
  readonly responseDeleteRange?: DeleteRangeResponse | undefined;
}

export interface Compare {
  readonly result: Compare_CompareResult;
  readonly target: Compare_CompareTarget;
  readonly key: Buffer;
  readonly createRevision?: number | undefined;
  readonly modRevision?: number | undefined;
}

export const Compare_CompareResult = { EQUAL: 0, GREATER: 1, LESS: 2, NOT_EQUAL: 3 } as const;

export type Compare_CompareResult = typeof Compare_CompareResult[keyof typeof Compare_CompareResult];

export namespace Compare_CompareResult {
  export type EQUAL = typeof Compare_CompareResult.EQUAL;
  export type GREATER = typeof Compare_CompareResult.GREATER;
  export type LESS = typeof Compare_CompareResult.LESS;
  export type NOT_EQUAL = typeof Compare_CompareResult.NOT_EQUAL;
}

export const Compare_CompareTarget = { VERSION: 0, CREATE: 1, MOD: 2, VALUE: 3, LEASE: 4 } as const;

export type Compare_CompareTarget = typeof Compare_CompareTarget[keyof typeof Compare_CompareTarget];

export namespace Compare_CompareTarget {
  export type VERSION = typeof Compare_CompareTarget.VERSION;
  export type CREATE = typeof Compare_CompareTarget.CREATE;
  export type MOD = typeof Compare_CompareTarget.MOD;
  export type VALUE = typeof Compare_CompareTarget.VALUE;
  export type LEASE = typeof Compare_CompareTarget.LEASE;
}

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

export interface TxnResponse {
  readonly header: ResponseHeader | undefined;
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}

export interface CompactionRequest {
  readonly revision: number;
}

export interface CompactionResponse {
  readonly header: ResponseHeader | undefined;
}

export interface WatchRequest {
  readonly createRequest?: WatchCreateRequest | undefined;
  readonly progressRequest?: WatchProgressRequest | undefined;
}

export interface WatchCreateRequest {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
  readonly startRevision: number;
  readonly progressNotify: boolean;
  readonly fragment: boolean;
}

export interface WatchProgressRequest {
}

export interface WatchResponse {
  readonly header: ResponseHeader | undefined;
  readonly watchId: number;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly compactRevision: number;
  readonly cancelReason: string;
  readonly fragment: boolean;
  readonly events: readonly Event[];
}

export interface Event {
  readonly type: Event_EventType;
  readonly kv: KeyValue | undefined;
}

export const Event_EventType = { PUT: 0, DELETE: 1 } as const;

export type Event_EventType = typeof Event_EventType[keyof typeof Event_EventType];

export namespace Event_EventType {
  export type PUT = typeof Event_EventType.PUT;
  export type DELETE = typeof Event_EventType.DELETE;
}

export interface LeaseGrantRequest {
  readonly TTL: number;
  readonly ID: number;
}

export interface LeaseGrantResponse {
  readonly header: ResponseHeader | undefined;
  readonly ID: number;
  readonly TTL: number;
}

export interface LeaseRevokeRequest {
  readonly ID: number;
}

export interface LeaseRevokeResponse {
}

export interface LeaseKeepAliveRequest {
  readonly ID: number;
}

export interface LeaseKeepAliveResponse {
  readonly header: ResponseHeader | undefined;
  readonly ID: number;
  readonly TTL: number;
}

export interface StatusRequest {
}

export interface StatusResponse {
  readonly header: ResponseHeader | undefined;
  readonly version: string;
  readonly dbSize: number;
  readonly leader: string;
  readonly errors: readonly string[];
  readonly dbSizeInUse: number;
  readonly isLearner: boolean;
}

export interface AlarmRequest {
  readonly action: AlarmRequest_AlarmAction;
  readonly memberID: string;
  readonly alarm: AlarmType;
}

export const AlarmRequest_AlarmAction = { GET: 0, ACTIVATE: 1, DEACTIVATE: 2 } as const;

export type AlarmRequest_AlarmAction = typeof AlarmRequest_AlarmAction[keyof typeof AlarmRequest_AlarmAction];

export namespace AlarmRequest_AlarmAction {
  export type GET = typeof AlarmRequest_AlarmAction.GET;
  export type ACTIVATE = typeof AlarmRequest_AlarmAction.ACTIVATE;
  export type DEACTIVATE = typeof AlarmRequest_AlarmAction.DEACTIVATE;
}

export interface AlarmMember {
  readonly memberID: string;
  readonly alarm: AlarmType;
}

export interface AlarmResponse {
  readonly header: ResponseHeader | undefined;
  readonly alarms: readonly AlarmMember[];
}

function createBaseResponseHeader(): ResponseHeader {
  return { clusterId: "0", memberId: "0", revision: 0 };
}

export const ResponseHeader: MessageFns<ResponseHeader> = {
  encode(message: ResponseHeader, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.clusterId !== "0") {
      writer.uint32(8).uint64(message.clusterId);
    }
    if (message.memberId !== "0") {
      writer.uint32(16).uint64(message.memberId);
    }
    if (message.revision !== 0) {
      writer.uint32(24).int64(message.revision);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): ResponseHeader {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseResponseHeader() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.clusterId = reader.uint64().toString();
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.memberId = reader.uint64().toString();
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.revision = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseKeyValue(): KeyValue {
  return { key: Buffer.alloc(0), createRevision: 0, modRevision: 0, value: Buffer.alloc(0) };
}

export const KeyValue: MessageFns<KeyValue> = {
  encode(message: KeyValue, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.key.length !== 0) {
      writer.uint32(10).bytes(message.key);
    }
    if (message.createRevision !== 0) {
      writer.uint32(16).int64(message.createRevision);
    }
    if (message.modRevision !== 0) {
      writer.uint32(24).int64(message.modRevision);
    }
    if (message.value.length !== 0) {
      writer.uint32(42).bytes(message.value);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): KeyValue {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseKeyValue() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.key = Buffer.from(reader.bytes());
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.createRevision = longToNumber(reader.int64());
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.modRevision = longToNumber(reader.int64());
            continue;
          }
          case 5: {
            if (tag !== 42) {
              break;
            }

            message.value = Buffer.from(reader.bytes());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseRangeRequest(): RangeRequest {
  return { key: Buffer.alloc(0), rangeEnd: Buffer.alloc(0), limit: 0, revision: 0, keysOnly: false, countOnly: false };
}

export const RangeRequest: MessageFns<RangeRequest> = {
  encode(message: RangeRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.key.length !== 0) {
      writer.uint32(10).bytes(message.key);
    }
    if (message.rangeEnd.length !== 0) {
      writer.uint32(18).bytes(message.rangeEnd);
    }
    if (message.limit !== 0) {
      writer.uint32(24).int64(message.limit);
    }
    if (message.revision !== 0) {
      writer.uint32(32).int64(message.revision);
    }
    if (message.keysOnly !== false) {
      writer.uint32(64).bool(message.keysOnly);
    }
    if (message.countOnly !== false) {
      writer.uint32(72).bool(message.countOnly);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): RangeRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseRangeRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.key = Buffer.from(reader.bytes());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.rangeEnd = Buffer.from(reader.bytes());
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.limit = longToNumber(reader.int64());
            continue;
          }
          case 4: {
            if (tag !== 32) {
              break;
            }

            message.revision = longToNumber(reader.int64());
            continue;
          }
          case 8: {
            if (tag !== 64) {
              break;
            }

            message.keysOnly = reader.bool();
            continue;
          }
          case 9: {
            if (tag !== 72) {
              break;
            }

            message.countOnly = reader.bool();
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseRangeResponse(): RangeResponse {
  return { header: undefined, kvs: [], more: false, count: 0 };
}

export const RangeResponse: MessageFns<RangeResponse> = {
  encode(message: RangeResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    for (const v of message.kvs) {
      KeyValue.encode(v!, writer.uint32(18).fork()).join();
    }
    if (message.more !== false) {
      writer.uint32(24).bool(message.more);
    }
    if (message.count !== 0) {
      writer.uint32(32).int64(message.count);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): RangeResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseRangeResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.kvs.push(KeyValue.decode(reader, reader.uint32()));
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.more = reader.bool();
            continue;
          }
          case 4: {
            if (tag !== 32) {
              break;
            }

            message.count = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBasePutRequest(): PutRequest {
  return { key: Buffer.alloc(0), value: Buffer.alloc(0), lease: 0 };
}

export const PutRequest: MessageFns<PutRequest> = {
  encode(message: PutRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.key.length !== 0) {
      writer.uint32(10).bytes(message.key);
    }
    if (message.value.length !== 0) {
      writer.uint32(18).bytes(message.value);
    }
    if (message.lease !== 0) {
      writer.uint32(24).int64(message.lease);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): PutRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBasePutRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.key = Buffer.from(reader.bytes());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.value = Buffer.from(reader.bytes());
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.lease = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBasePutResponse(): PutResponse {
  return {};
}

export const PutResponse: MessageFns<PutResponse> = {
  encode(_: PutResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): PutResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBasePutResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseDeleteRangeRequest(): DeleteRangeRequest {
  return { key: Buffer.alloc(0), rangeEnd: Buffer.alloc(0) };
}

export const DeleteRangeRequest: MessageFns<DeleteRangeRequest> = {
  encode(message: DeleteRangeRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.key.length !== 0) {
      writer.uint32(10).bytes(message.key);
    }
    if (message.rangeEnd.length !== 0) {
      writer.uint32(18).bytes(message.rangeEnd);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): DeleteRangeRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseDeleteRangeRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.key = Buffer.from(reader.bytes());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.rangeEnd = Buffer.from(reader.bytes());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseDeleteRangeResponse(): DeleteRangeResponse {
  return { deleted: 0 };
}

export const DeleteRangeResponse: MessageFns<DeleteRangeResponse> = {
  encode(message: DeleteRangeResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.deleted !== 0) {
      writer.uint32(16).int64(message.deleted);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): DeleteRangeResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseDeleteRangeResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.deleted = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseRequestOp(): RequestOp {
  return { requestRange: undefined, requestPut: undefined, requestDeleteRange: undefined };
}

export const RequestOp: MessageFns<RequestOp> = {
  encode(message: RequestOp, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.requestRange !== undefined) {
      RangeRequest.encode(message.requestRange, writer.uint32(10).fork()).join();
    }
    if (message.requestPut !== undefined) {
      PutRequest.encode(message.requestPut, writer.uint32(18).fork()).join();
    }
    if (message.requestDeleteRange !== undefined) {
      DeleteRangeRequest.encode(message.requestDeleteRange, writer.uint32(26).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): RequestOp {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseRequestOp() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.requestRange = RangeRequest.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.requestPut = PutRequest.decode(reader, reader.uint32());
            continue;
          }
          case 3: {
            if (tag !== 26) {
              break;
            }

            message.requestDeleteRange = DeleteRangeRequest.decode(reader, reader.uint32());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseResponseOp(): ResponseOp {
  return { responseRange: undefined, responsePut: undefined, responseDeleteRange: undefined };
}

export const ResponseOp: MessageFns<ResponseOp> = {
  encode(message: ResponseOp, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.responseRange !== undefined) {
      RangeResponse.encode(message.responseRange, writer.uint32(10).fork()).join();
    }
    if (message.responsePut !== undefined) {
      PutResponse.encode(message.responsePut, writer.uint32(18).fork()).join();
    }
    if (message.responseDeleteRange !== undefined) {
      DeleteRangeResponse.encode(message.responseDeleteRange, writer.uint32(26).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): ResponseOp {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseResponseOp() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.responseRange = RangeResponse.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.responsePut = PutResponse.decode(reader, reader.uint32());
            continue;
          }
          case 3: {
            if (tag !== 26) {
              break;
            }

            message.responseDeleteRange = DeleteRangeResponse.decode(reader, reader.uint32());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseCompare(): Compare {
  return { result: 0, target: 0, key: Buffer.alloc(0), createRevision: undefined, modRevision: undefined };
}

export const Compare: MessageFns<Compare> = {
  encode(message: Compare, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.result !== 0) {
      writer.uint32(8).int32(message.result);
    }
    if (message.target !== 0) {
      writer.uint32(16).int32(message.target);
    }
    if (message.key.length !== 0) {
      writer.uint32(26).bytes(message.key);
    }
    if (message.createRevision !== undefined) {
      writer.uint32(40).int64(message.createRevision);
    }
    if (message.modRevision !== undefined) {
      writer.uint32(48).int64(message.modRevision);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): Compare {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseCompare() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.result = reader.int32() as any;
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.target = reader.int32() as any;
            continue;
          }
          case 3: {
            if (tag !== 26) {
              break;
            }

            message.key = Buffer.from(reader.bytes());
            continue;
          }
          case 5: {
            if (tag !== 40) {
              break;
            }

            message.createRevision = longToNumber(reader.int64());
            continue;
          }
          case 6: {
            if (tag !== 48) {
              break;
            }

            message.modRevision = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseTxnRequest(): TxnRequest {
  return { compare: [], success: [], failure: [] };
}

export const TxnRequest: MessageFns<TxnRequest> = {
  encode(message: TxnRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    for (const v of message.compare) {
      Compare.encode(v!, writer.uint32(10).fork()).join();
    }
    for (const v of message.success) {
      RequestOp.encode(v!, writer.uint32(18).fork()).join();
    }
    for (const v of message.failure) {
      RequestOp.encode(v!, writer.uint32(26).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): TxnRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseTxnRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.compare.push(Compare.decode(reader, reader.uint32()));
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.success.push(RequestOp.decode(reader, reader.uint32()));
            continue;
          }
          case 3: {
            if (tag !== 26) {
              break;
            }

            message.failure.push(RequestOp.decode(reader, reader.uint32()));
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseTxnResponse(): TxnResponse {
  return { header: undefined, succeeded: false, responses: [] };
}

export const TxnResponse: MessageFns<TxnResponse> = {
  encode(message: TxnResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    if (message.succeeded !== false) {
      writer.uint32(16).bool(message.succeeded);
    }
    for (const v of message.responses) {
      ResponseOp.encode(v!, writer.uint32(26).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): TxnResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseTxnResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.succeeded = reader.bool();
            continue;
          }
          case 3: {
            if (tag !== 26) {
              break;
            }

            message.responses.push(ResponseOp.decode(reader, reader.uint32()));
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseCompactionRequest(): CompactionRequest {
  return { revision: 0 };
}

export const CompactionRequest: MessageFns<CompactionRequest> = {
  encode(message: CompactionRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.revision !== 0) {
      writer.uint32(8).int64(message.revision);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): CompactionRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseCompactionRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.revision = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseCompactionResponse(): CompactionResponse {
  return { header: undefined };
}

export const CompactionResponse: MessageFns<CompactionResponse> = {
  encode(message: CompactionResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): CompactionResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseCompactionResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseWatchRequest(): WatchRequest {
  return { createRequest: undefined, progressRequest: undefined };
}

export const WatchRequest: MessageFns<WatchRequest> = {
  encode(message: WatchRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.createRequest !== undefined) {
      WatchCreateRequest.encode(message.createRequest, writer.uint32(10).fork()).join();
    }
    if (message.progressRequest !== undefined) {
      WatchProgressRequest.encode(message.progressRequest, writer.uint32(26).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): WatchRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseWatchRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.createRequest = WatchCreateRequest.decode(reader, reader.uint32());
            continue;
          }
          case 3: {
            if (tag !== 26) {
              break;
            }

            message.progressRequest = WatchProgressRequest.decode(reader, reader.uint32());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseWatchCreateRequest(): WatchCreateRequest {
  return { key: Buffer.alloc(0), rangeEnd: Buffer.alloc(0), startRevision: 0, progressNotify: false, fragment: false };
}

export const WatchCreateRequest: MessageFns<WatchCreateRequest> = {
  encode(message: WatchCreateRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.key.length !== 0) {
      writer.uint32(10).bytes(message.key);
    }
    if (message.rangeEnd.length !== 0) {
      writer.uint32(18).bytes(message.rangeEnd);
    }
    if (message.startRevision !== 0) {
      writer.uint32(24).int64(message.startRevision);
    }
    if (message.progressNotify !== false) {
      writer.uint32(32).bool(message.progressNotify);
    }
    if (message.fragment !== false) {
      writer.uint32(64).bool(message.fragment);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): WatchCreateRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseWatchCreateRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.key = Buffer.from(reader.bytes());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.rangeEnd = Buffer.from(reader.bytes());
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.startRevision = longToNumber(reader.int64());
            continue;
          }
          case 4: {
            if (tag !== 32) {
              break;
            }

            message.progressNotify = reader.bool();
            continue;
          }
          case 8: {
            if (tag !== 64) {
              break;
            }

            message.fragment = reader.bool();
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseWatchProgressRequest(): WatchProgressRequest {
  return {};
}

export const WatchProgressRequest: MessageFns<WatchProgressRequest> = {
  encode(_: WatchProgressRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): WatchProgressRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseWatchProgressRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseWatchResponse(): WatchResponse {
  return {
    header: undefined,
    watchId: 0,
    created: false,
    canceled: false,
    compactRevision: 0,
    cancelReason: "",
    fragment: false,
    events: [],
  };
}

export const WatchResponse: MessageFns<WatchResponse> = {
  encode(message: WatchResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    if (message.watchId !== 0) {
      writer.uint32(16).int64(message.watchId);
    }
    if (message.created !== false) {
      writer.uint32(24).bool(message.created);
    }
    if (message.canceled !== false) {
      writer.uint32(32).bool(message.canceled);
    }
    if (message.compactRevision !== 0) {
      writer.uint32(40).int64(message.compactRevision);
    }
    if (message.cancelReason !== "") {
      writer.uint32(50).string(message.cancelReason);
    }
    if (message.fragment !== false) {
      writer.uint32(56).bool(message.fragment);
    }
    for (const v of message.events) {
      Event.encode(v!, writer.uint32(90).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): WatchResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseWatchResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.watchId = longToNumber(reader.int64());
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.created = reader.bool();
            continue;
          }
          case 4: {
            if (tag !== 32) {
              break;
            }

            message.canceled = reader.bool();
            continue;
          }
          case 5: {
            if (tag !== 40) {
              break;
            }

            message.compactRevision = longToNumber(reader.int64());
            continue;
          }
          case 6: {
            if (tag !== 50) {
              break;
            }

            message.cancelReason = reader.string();
            continue;
          }
          case 7: {
            if (tag !== 56) {
              break;
            }

            message.fragment = reader.bool();
            continue;
          }
          case 11: {
            if (tag !== 90) {
              break;
            }

            message.events.push(Event.decode(reader, reader.uint32()));
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseEvent(): Event {
  return { type: 0, kv: undefined };
}

export const Event: MessageFns<Event> = {
  encode(message: Event, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.type !== 0) {
      writer.uint32(8).int32(message.type);
    }
    if (message.kv !== undefined) {
      KeyValue.encode(message.kv, writer.uint32(18).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): Event {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseEvent() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.type = reader.int32() as any;
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.kv = KeyValue.decode(reader, reader.uint32());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseLeaseGrantRequest(): LeaseGrantRequest {
  return { TTL: 0, ID: 0 };
}

export const LeaseGrantRequest: MessageFns<LeaseGrantRequest> = {
  encode(message: LeaseGrantRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.TTL !== 0) {
      writer.uint32(8).int64(message.TTL);
    }
    if (message.ID !== 0) {
      writer.uint32(16).int64(message.ID);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): LeaseGrantRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseLeaseGrantRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.TTL = longToNumber(reader.int64());
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.ID = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseLeaseGrantResponse(): LeaseGrantResponse {
  return { header: undefined, ID: 0, TTL: 0 };
}

export const LeaseGrantResponse: MessageFns<LeaseGrantResponse> = {
  encode(message: LeaseGrantResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    if (message.ID !== 0) {
      writer.uint32(16).int64(message.ID);
    }
    if (message.TTL !== 0) {
      writer.uint32(24).int64(message.TTL);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): LeaseGrantResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseLeaseGrantResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.ID = longToNumber(reader.int64());
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.TTL = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseLeaseRevokeRequest(): LeaseRevokeRequest {
  return { ID: 0 };
}

export const LeaseRevokeRequest: MessageFns<LeaseRevokeRequest> = {
  encode(message: LeaseRevokeRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.ID !== 0) {
      writer.uint32(8).int64(message.ID);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): LeaseRevokeRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseLeaseRevokeRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.ID = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseLeaseRevokeResponse(): LeaseRevokeResponse {
  return {};
}

export const LeaseRevokeResponse: MessageFns<LeaseRevokeResponse> = {
  encode(_: LeaseRevokeResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): LeaseRevokeResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseLeaseRevokeResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseLeaseKeepAliveRequest(): LeaseKeepAliveRequest {
  return { ID: 0 };
}

export const LeaseKeepAliveRequest: MessageFns<LeaseKeepAliveRequest> = {
  encode(message: LeaseKeepAliveRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.ID !== 0) {
      writer.uint32(8).int64(message.ID);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): LeaseKeepAliveRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseLeaseKeepAliveRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.ID = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseLeaseKeepAliveResponse(): LeaseKeepAliveResponse {
  return { header: undefined, ID: 0, TTL: 0 };
}

export const LeaseKeepAliveResponse: MessageFns<LeaseKeepAliveResponse> = {
  encode(message: LeaseKeepAliveResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    if (message.ID !== 0) {
      writer.uint32(16).int64(message.ID);
    }
    if (message.TTL !== 0) {
      writer.uint32(24).int64(message.TTL);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): LeaseKeepAliveResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseLeaseKeepAliveResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.ID = longToNumber(reader.int64());
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.TTL = longToNumber(reader.int64());
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseStatusRequest(): StatusRequest {
  return {};
}

export const StatusRequest: MessageFns<StatusRequest> = {
  encode(_: StatusRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): StatusRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseStatusRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseStatusResponse(): StatusResponse {
  return { header: undefined, version: "", dbSize: 0, leader: "0", errors: [], dbSizeInUse: 0, isLearner: false };
}

export const StatusResponse: MessageFns<StatusResponse> = {
  encode(message: StatusResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    if (message.version !== "") {
      writer.uint32(18).string(message.version);
    }
    if (message.dbSize !== 0) {
      writer.uint32(24).int64(message.dbSize);
    }
    if (message.leader !== "0") {
      writer.uint32(32).uint64(message.leader);
    }
    for (const v of message.errors) {
      writer.uint32(66).string(v!);
    }
    if (message.dbSizeInUse !== 0) {
      writer.uint32(72).int64(message.dbSizeInUse);
    }
    if (message.isLearner !== false) {
      writer.uint32(80).bool(message.isLearner);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): StatusResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseStatusResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.version = reader.string();
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.dbSize = longToNumber(reader.int64());
            continue;
          }
          case 4: {
            if (tag !== 32) {
              break;
            }

            message.leader = reader.uint64().toString();
            continue;
          }
          case 8: {
            if (tag !== 66) {
              break;
            }

            message.errors.push(reader.string());
            continue;
          }
          case 9: {
            if (tag !== 72) {
              break;
            }

            message.dbSizeInUse = longToNumber(reader.int64());
            continue;
          }
          case 10: {
            if (tag !== 80) {
              break;
            }

            message.isLearner = reader.bool();
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseAlarmRequest(): AlarmRequest {
  return { action: 0, memberID: "0", alarm: 0 };
}

export const AlarmRequest: MessageFns<AlarmRequest> = {
  encode(message: AlarmRequest, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.action !== 0) {
      writer.uint32(8).int32(message.action);
    }
    if (message.memberID !== "0") {
      writer.uint32(16).uint64(message.memberID);
    }
    if (message.alarm !== 0) {
      writer.uint32(24).int32(message.alarm);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): AlarmRequest {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseAlarmRequest() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.action = reader.int32() as any;
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.memberID = reader.uint64().toString();
            continue;
          }
          case 3: {
            if (tag !== 24) {
              break;
            }

            message.alarm = reader.int32() as any;
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseAlarmMember(): AlarmMember {
  return { memberID: "0", alarm: 0 };
}

export const AlarmMember: MessageFns<AlarmMember> = {
  encode(message: AlarmMember, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.memberID !== "0") {
      writer.uint32(8).uint64(message.memberID);
    }
    if (message.alarm !== 0) {
      writer.uint32(16).int32(message.alarm);
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): AlarmMember {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseAlarmMember() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 8) {
              break;
            }

            message.memberID = reader.uint64().toString();
            continue;
          }
          case 2: {
            if (tag !== 16) {
              break;
            }

            message.alarm = reader.int32() as any;
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

function createBaseAlarmResponse(): AlarmResponse {
  return { header: undefined, alarms: [] };
}

export const AlarmResponse: MessageFns<AlarmResponse> = {
  encode(message: AlarmResponse, writer: BinaryWriter = new BinaryWriter()): BinaryWriter {
    if (message.header !== undefined) {
      ResponseHeader.encode(message.header, writer.uint32(10).fork()).join();
    }
    for (const v of message.alarms) {
      AlarmMember.encode(v!, writer.uint32(18).fork()).join();
    }
    return writer;
  },

  decode(input: BinaryReader | Uint8Array, length?: number): AlarmResponse {
    const reader = input instanceof BinaryReader ? input : new BinaryReader(input);
    const previousRecursionDepth = (reader as any).__tsProtoDecodeDepth ?? 0;
    if (previousRecursionDepth >= 100) {
      throw new globalThis.Error("protobuf decode recursion limit exceeded");
    }
    (reader as any).__tsProtoDecodeDepth = previousRecursionDepth + 1;
    try {
      const end = length === undefined ? reader.len : reader.pos + length;
      const message = createBaseAlarmResponse() as any;
      while (reader.pos < end) {
        const tag = reader.uint32();
        switch (tag >>> 3) {
          case 1: {
            if (tag !== 10) {
              break;
            }

            message.header = ResponseHeader.decode(reader, reader.uint32());
            continue;
          }
          case 2: {
            if (tag !== 18) {
              break;
            }

            message.alarms.push(AlarmMember.decode(reader, reader.uint32()));
            continue;
          }
        }
        if ((tag & 7) === 4 || tag === 0) {
          break;
        }
        reader.skip(tag & 7);
      }
      return message;
    } finally {
      (reader as any).__tsProtoDecodeDepth = previousRecursionDepth;
    }
  },
};

export type KVService = typeof KVService;
export const KVService = {
  range: {
    path: "/etcdserverpb.KV/Range" as const,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (value: RangeRequest): Buffer => Buffer.from(RangeRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): RangeRequest => RangeRequest.decode(value),
    responseSerialize: (value: RangeResponse): Buffer => Buffer.from(RangeResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): RangeResponse => RangeResponse.decode(value),
  },
  txn: {
    path: "/etcdserverpb.KV/Txn" as const,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (value: TxnRequest): Buffer => Buffer.from(TxnRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): TxnRequest => TxnRequest.decode(value),
    responseSerialize: (value: TxnResponse): Buffer => Buffer.from(TxnResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): TxnResponse => TxnResponse.decode(value),
  },
  compact: {
    path: "/etcdserverpb.KV/Compact" as const,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (value: CompactionRequest): Buffer => Buffer.from(CompactionRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): CompactionRequest => CompactionRequest.decode(value),
    responseSerialize: (value: CompactionResponse): Buffer => Buffer.from(CompactionResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): CompactionResponse => CompactionResponse.decode(value),
  },
} as const;

export interface KVServer extends UntypedServiceImplementation {
  range: handleUnaryCall<RangeRequest, RangeResponse>;
  txn: handleUnaryCall<TxnRequest, TxnResponse>;
  compact: handleUnaryCall<CompactionRequest, CompactionResponse>;
}

export interface KVClient extends Client {
  range(
    request: RangeRequest,
    callback: (error: ServiceError | null, response: RangeResponse) => void,
  ): ClientUnaryCall;
  range(
    request: RangeRequest,
    metadata: Metadata,
    callback: (error: ServiceError | null, response: RangeResponse) => void,
  ): ClientUnaryCall;
  range(
    request: RangeRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
    callback: (error: ServiceError | null, response: RangeResponse) => void,
  ): ClientUnaryCall;
  txn(request: TxnRequest, callback: (error: ServiceError | null, response: TxnResponse) => void): ClientUnaryCall;
  txn(
    request: TxnRequest,
    metadata: Metadata,
    callback: (error: ServiceError | null, response: TxnResponse) => void,
  ): ClientUnaryCall;
  txn(
    request: TxnRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
    callback: (error: ServiceError | null, response: TxnResponse) => void,
  ): ClientUnaryCall;
  compact(
    request: CompactionRequest,
    callback: (error: ServiceError | null, response: CompactionResponse) => void,
  ): ClientUnaryCall;
  compact(
    request: CompactionRequest,
    metadata: Metadata,
    callback: (error: ServiceError | null, response: CompactionResponse) => void,
  ): ClientUnaryCall;
  compact(
    request: CompactionRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
    callback: (error: ServiceError | null, response: CompactionResponse) => void,
  ): ClientUnaryCall;
}

export const KVClient = makeGenericClientConstructor(KVService, "etcdserverpb.KV") as unknown as {
  new (address: string, credentials: ChannelCredentials, options?: Partial<ClientOptions>): KVClient;
  service: typeof KVService;
  serviceName: string;
};

export type WatchService = typeof WatchService;
export const WatchService = {
  watch: {
    path: "/etcdserverpb.Watch/Watch" as const,
    requestStream: true as const,
    responseStream: true as const,
    requestSerialize: (value: WatchRequest): Buffer => Buffer.from(WatchRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): WatchRequest => WatchRequest.decode(value),
    responseSerialize: (value: WatchResponse): Buffer => Buffer.from(WatchResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): WatchResponse => WatchResponse.decode(value),
  },
} as const;

export interface WatchServer extends UntypedServiceImplementation {
  watch: handleBidiStreamingCall<WatchRequest, WatchResponse>;
}

export interface WatchClient extends Client {
  watch(): ClientDuplexStream<WatchRequest, WatchResponse>;
  watch(options: Partial<CallOptions>): ClientDuplexStream<WatchRequest, WatchResponse>;
  watch(metadata: Metadata, options?: Partial<CallOptions>): ClientDuplexStream<WatchRequest, WatchResponse>;
}

export const WatchClient = makeGenericClientConstructor(WatchService, "etcdserverpb.Watch") as unknown as {
  new (address: string, credentials: ChannelCredentials, options?: Partial<ClientOptions>): WatchClient;
  service: typeof WatchService;
  serviceName: string;
};

export type LeaseService = typeof LeaseService;
export const LeaseService = {
  leaseGrant: {
    path: "/etcdserverpb.Lease/LeaseGrant" as const,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (value: LeaseGrantRequest): Buffer => Buffer.from(LeaseGrantRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): LeaseGrantRequest => LeaseGrantRequest.decode(value),
    responseSerialize: (value: LeaseGrantResponse): Buffer => Buffer.from(LeaseGrantResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): LeaseGrantResponse => LeaseGrantResponse.decode(value),
  },
  leaseRevoke: {
    path: "/etcdserverpb.Lease/LeaseRevoke" as const,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (value: LeaseRevokeRequest): Buffer => Buffer.from(LeaseRevokeRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): LeaseRevokeRequest => LeaseRevokeRequest.decode(value),
    responseSerialize: (value: LeaseRevokeResponse): Buffer => Buffer.from(LeaseRevokeResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): LeaseRevokeResponse => LeaseRevokeResponse.decode(value),
  },
  leaseKeepAlive: {
    path: "/etcdserverpb.Lease/LeaseKeepAlive" as const,
    requestStream: true as const,
    responseStream: true as const,
    requestSerialize: (value: LeaseKeepAliveRequest): Buffer =>
      Buffer.from(LeaseKeepAliveRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): LeaseKeepAliveRequest => LeaseKeepAliveRequest.decode(value),
    responseSerialize: (value: LeaseKeepAliveResponse): Buffer =>
      Buffer.from(LeaseKeepAliveResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): LeaseKeepAliveResponse => LeaseKeepAliveResponse.decode(value),
  },
} as const;

export interface LeaseServer extends UntypedServiceImplementation {
  leaseGrant: handleUnaryCall<LeaseGrantRequest, LeaseGrantResponse>;
  leaseRevoke: handleUnaryCall<LeaseRevokeRequest, LeaseRevokeResponse>;
  leaseKeepAlive: handleBidiStreamingCall<LeaseKeepAliveRequest, LeaseKeepAliveResponse>;
}

export interface LeaseClient extends Client {
  leaseGrant(
    request: LeaseGrantRequest,
    callback: (error: ServiceError | null, response: LeaseGrantResponse) => void,
  ): ClientUnaryCall;
  leaseGrant(
    request: LeaseGrantRequest,
    metadata: Metadata,
    callback: (error: ServiceError | null, response: LeaseGrantResponse) => void,
  ): ClientUnaryCall;
  leaseGrant(
    request: LeaseGrantRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
    callback: (error: ServiceError | null, response: LeaseGrantResponse) => void,
  ): ClientUnaryCall;
  leaseRevoke(
    request: LeaseRevokeRequest,
    callback: (error: ServiceError | null, response: LeaseRevokeResponse) => void,
  ): ClientUnaryCall;
  leaseRevoke(
    request: LeaseRevokeRequest,
    metadata: Metadata,
    callback: (error: ServiceError | null, response: LeaseRevokeResponse) => void,
  ): ClientUnaryCall;
  leaseRevoke(
    request: LeaseRevokeRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
    callback: (error: ServiceError | null, response: LeaseRevokeResponse) => void,
  ): ClientUnaryCall;
  leaseKeepAlive(): ClientDuplexStream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>;
  leaseKeepAlive(options: Partial<CallOptions>): ClientDuplexStream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>;
  leaseKeepAlive(
    metadata: Metadata,
    options?: Partial<CallOptions>,
  ): ClientDuplexStream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>;
}

export const LeaseClient = makeGenericClientConstructor(LeaseService, "etcdserverpb.Lease") as unknown as {
  new (address: string, credentials: ChannelCredentials, options?: Partial<ClientOptions>): LeaseClient;
  service: typeof LeaseService;
  serviceName: string;
};

export type MaintenanceService = typeof MaintenanceService;
export const MaintenanceService = {
  status: {
    path: "/etcdserverpb.Maintenance/Status" as const,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (value: StatusRequest): Buffer => Buffer.from(StatusRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): StatusRequest => StatusRequest.decode(value),
    responseSerialize: (value: StatusResponse): Buffer => Buffer.from(StatusResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): StatusResponse => StatusResponse.decode(value),
  },
  alarm: {
    path: "/etcdserverpb.Maintenance/Alarm" as const,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (value: AlarmRequest): Buffer => Buffer.from(AlarmRequest.encode(value).finish()),
    requestDeserialize: (value: Buffer): AlarmRequest => AlarmRequest.decode(value),
    responseSerialize: (value: AlarmResponse): Buffer => Buffer.from(AlarmResponse.encode(value).finish()),
    responseDeserialize: (value: Buffer): AlarmResponse => AlarmResponse.decode(value),
  },
} as const;

export interface MaintenanceServer extends UntypedServiceImplementation {
  status: handleUnaryCall<StatusRequest, StatusResponse>;
  alarm: handleUnaryCall<AlarmRequest, AlarmResponse>;
}

export interface MaintenanceClient extends Client {
  status(
    request: StatusRequest,
    callback: (error: ServiceError | null, response: StatusResponse) => void,
  ): ClientUnaryCall;
  status(
    request: StatusRequest,
    metadata: Metadata,
    callback: (error: ServiceError | null, response: StatusResponse) => void,
  ): ClientUnaryCall;
  status(
    request: StatusRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
    callback: (error: ServiceError | null, response: StatusResponse) => void,
  ): ClientUnaryCall;
  alarm(
    request: AlarmRequest,
    callback: (error: ServiceError | null, response: AlarmResponse) => void,
  ): ClientUnaryCall;
  alarm(
    request: AlarmRequest,
    metadata: Metadata,
    callback: (error: ServiceError | null, response: AlarmResponse) => void,
  ): ClientUnaryCall;
  alarm(
    request: AlarmRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
    callback: (error: ServiceError | null, response: AlarmResponse) => void,
  ): ClientUnaryCall;
}

export const MaintenanceClient = makeGenericClientConstructor(
  MaintenanceService,
  "etcdserverpb.Maintenance",
) as unknown as {
  new (address: string, credentials: ChannelCredentials, options?: Partial<ClientOptions>): MaintenanceClient;
  service: typeof MaintenanceService;
  serviceName: string;
};

function longToNumber(int64: { toString(): string }): number {
  const num = globalThis.Number(int64.toString());
  if (num > globalThis.Number.MAX_SAFE_INTEGER) {
    throw new globalThis.Error("Value is larger than Number.MAX_SAFE_INTEGER");
  }
  if (num < globalThis.Number.MIN_SAFE_INTEGER) {
    throw new globalThis.Error("Value is smaller than Number.MIN_SAFE_INTEGER");
  }
  return num;
}

export interface MessageFns<T> {
  encode(message: T, writer?: BinaryWriter): BinaryWriter;
  decode(input: BinaryReader | Uint8Array, length?: number): T;
}
