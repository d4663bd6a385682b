// SPDX-License-Identifier: Apache-2.0
//! The part of the C ABI that an optimizer needs, by hand, and a thin wrapper over it.
//!
//! Each struct is one of gradrack/*.h, member for member; read them there. `layout.c`, compiled
//! against the installed headers, writes the sizes that the assertions below compare with.
//! Invariant: a struct here is a beginning of the SDK's, so a newer SDK that added members at the
//! end still builds and loads this. No function unwinds into C: see `guarded`.
#![allow(dead_code)]

use std::mem::size_of;
use std::os::raw::{c_char, c_void};

/// `c!("text")`: a 0-terminated text of static life.
macro_rules! c {
    ($text:expr) => {
        concat!($text, "\0").as_ptr() as *const ::std::os::raw::c_char
    };
}
pub(crate) use c;

pub const OK: i32 = 0;
pub const INVALID_ARGUMENT: i32 = 2;
pub const OUT_OF_MEMORY: i32 = 6;
pub const VERSION: i32 = 8;
pub const INTERNAL: i32 = 11;
pub const FLOAT64: i32 = 2 * 256 + 64;
pub const OPTION_FLOAT: i32 = 3;
pub const ATTR_INT: i32 = 1;
pub const ABI_MAJOR: u32 = 1;
pub const ABI_MINOR: u32 = 0;

pub type Value = i32;
pub type Entry = unsafe extern "C" fn(*const Host, *mut Plugin, *mut Error) -> i32;

#[repr(C)]
pub struct Error {
    pub code: i32,
    pub domain: i32,
    pub retryable: i32,
    pub reserved: i32,
    pub field: [u8; 64],
    pub message: [u8; 432],
}

#[repr(C)]
pub struct Host {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_min_minor: u32,
    pub abi_max_minor: u32,
    pub reserved: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub context: *mut c_void,
    pub log: Option<unsafe extern "C" fn(*mut c_void, i32, *const c_char)>,
    pub get_extension: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_void>,
}

#[repr(C)]
pub struct OptionRow {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub kind: i32,
    pub list_length: i32,
    pub default_text: *const c_char,
    pub min: f64,
    pub max: f64,
    pub choices: *const c_char,
    pub help: *const c_char,
}

#[repr(C)]
pub struct OptionValue {
    pub name: *const c_char,
    pub kind: i32,
    pub is_default: i32,
    pub i: i64,
    pub f: f64,
    pub s: *const c_char,
    pub ints: *const i64,
    pub floats: *const f64,
    pub strings: *const *const c_char,
    pub count: u64,
}

#[repr(C)]
pub struct Options {
    pub struct_size: u32,
    pub item_stride: u32,
    pub items: *const OptionValue,
    pub count: u64,
}

#[repr(C)]
pub struct Factory {
    pub struct_size: u32,
    pub flags: u32,
    pub kind: *const c_char,
    pub name: *const c_char,
    pub version: *const c_char,
    pub help: *const c_char,
    pub options: *const OptionRow,
    pub option_count: u32,
    pub option_stride: u32,
    pub probe: Option<unsafe extern "C" fn(*const Host, *mut Error) -> i32>,
    pub create: Option<
        unsafe extern "C" fn(*const Host, *const Options, *mut Optimizer, *mut Error) -> i32,
    >,
}

#[repr(C)]
pub struct Plugin {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_minor: u32,
    pub factory_count: u32,
    pub factories: *const *const Factory,
    pub id: *const c_char,
    pub version: *const c_char,
    pub stop: Option<unsafe extern "C" fn(i64, *mut Error) -> i32>,
    pub get_extension: Option<unsafe extern "C" fn(*const c_char) -> *const c_void>,
}

#[repr(C)]
pub struct PluginHeader {
    pub magic: u64,
    pub struct_size: u32,
    pub abi_major: u32,
    pub abi_min_minor: u32,
    pub abi_max_minor: u32,
    pub entry: Entry,
}

#[repr(C)]
pub struct Attr {
    pub name: *const c_char,
    pub kind: i32,
    pub reserved: i32,
    pub i: i64,
    pub f: f64,
    pub s: *const c_char,
    pub ints: *const i64,
    pub floats: *const f64,
    pub count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Init {
    pub kind: i32,
    pub reserved: i32,
    pub a: f64,
    pub b: f64,
}

#[repr(C)]
pub struct Node {
    pub struct_size: u32,
    pub input_count: u32,
    pub domain: *const c_char,
    pub op: *const c_char,
    pub inputs: *const Value,
    pub attrs: *const Attr,
    pub attr_count: u32,
    pub output_count: u32,
}

#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub dtype: [u8; 4], // code, bits, lanes (16 bits)
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// Slots that an optimizer does not call are plain pointers: only their place counts.
#[repr(C)]
pub struct GraphApi {
    pub struct_size: u32,
    pub flags: u32,
    pub input: *const c_void,
    pub parameter: *const c_void,
    pub buffer: *const c_void,
    pub update_buffer: *const c_void,
    pub constant:
        unsafe extern "C" fn(*mut c_void, *const Tensor, *mut Value, *mut Error) -> i32,
    pub node: unsafe extern "C" fn(*mut c_void, *const Node, *mut Value, *mut Error) -> i32,
    pub objective: *const c_void,
    pub output: *const c_void,
    pub push_stage: *const c_void,
    pub pop_stage: *const c_void,
    pub type_of: *const c_void,
}

#[repr(C)]
pub struct Builder {
    pub api: *const GraphApi,
    pub graph: *mut c_void,
}

#[repr(C)]
pub struct ParameterInfo {
    pub struct_size: u32,
    pub dtype: i32,
    pub name: *const c_char,
    pub stage: *const c_char,
    pub dims: *const i64,
    pub rank: u32,
    pub role: i32,
}

#[repr(C)]
pub struct State {
    pub name: *const c_char,
    pub dtype: i32,
    pub rank: u32,
    pub dims: [i64; 8],
    pub init: Init,
}

#[repr(C)]
pub struct Update {
    pub struct_size: u32,
    pub state_count: u32,
    pub info: *const ParameterInfo,
    pub parameter: Value,
    pub gradient: Value,
    pub states: *const Value,
    pub lr: Value,
    pub step: Value,
    pub new_parameter: Value,
    pub new_states: [Value; 8],
}

#[repr(C)]
pub struct Optimizer {
    pub struct_size: u32,
    pub flags: u32,
    pub this: *mut c_void,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub declare_state: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *const ParameterInfo,
            *mut State,
            *mut u32,
            *mut Error,
        ) -> i32,
    >,
    pub build_update:
        Option<unsafe extern "C" fn(*mut c_void, *const Builder, *mut Update, *mut Error) -> i32>,
    pub get_extension: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_void>,
}

// The host reads these and never writes them; their pointers are to static data.
unsafe impl Sync for Factory {}
unsafe impl Sync for OptionRow {}

/// The ends of the same structs in the SDK, in bytes: written by layout.c.
mod layout {
    include!(env!("GRADRACK_LAYOUT"));
}
macro_rules! same_layout {
    ($($rust:ty = $end:ident),* $(,)?) => {
        $(const _: () = assert!(size_of::<$rust>() == (layout::$end + 7) / 8 * 8);)*
    };
}
same_layout!(
    Error = GR_ERROR, Host = GR_HOST, OptionRow = GR_OPTION, OptionValue = GR_OPTION_VALUE,
    Options = GR_OPTIONS, Factory = GR_FACTORY, Plugin = GR_PLUGIN,
    PluginHeader = GR_PLUGIN_HEADER, Attr = GR_ATTR, Init = GR_INIT, Node = GR_NODE,
    Tensor = DL_TENSOR, GraphApi = GR_GRAPH_API, Builder = GR_BUILDER,
    ParameterInfo = GR_PARAMETER_INFO, State = GR_STATE, Update = GR_UPDATE,
    Optimizer = GR_OPTIMIZER,
);

/// Fills `err` and returns `code`. What does not fit is cut.
pub fn fail(err: *mut Error, code: i32, message: &str) -> i32 {
    if let Some(err) = unsafe { err.as_mut() } {
        err.code = code;
        err.field[0] = 0;
        let count = message.len().min(err.message.len() - 1);
        err.message[..count].copy_from_slice(&message.as_bytes()[..count]);
        err.message[count] = 0;
    }
    code
}

/// Runs `body` behind the wall: a panic becomes GR_INTERNAL instead of unwinding into the host.
pub fn guarded(err: *mut Error, body: impl FnOnce() -> Result<(), i32>) -> i32 {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(())) => OK,
        Ok(Err(code)) => code,
        Err(_) => fail(err, INTERNAL, "the plugin panicked; its message is on stderr"),
    }
}

/// The host's builder during one call. Err(code) leaves the host's own error record as it is.
pub struct Graph<'a> {
    builder: &'a Builder,
    err: *mut Error,
}

impl<'a> Graph<'a> {
    /// # Safety
    /// Both are what the host passed to the call that uses this.
    pub unsafe fn new(builder: *const Builder, err: *mut Error) -> Self {
        Graph { builder: &*builder, err }
    }

    /// An operator with one output; `op` comes from c!("Add").
    pub fn node(&self, op: *const c_char, inputs: &[Value], attrs: &[Attr]) -> Result<Value, i32> {
        let node = Node {
            struct_size: size_of::<Node>() as u32,
            input_count: inputs.len() as u32,
            domain: c!(""),
            op,
            inputs: inputs.as_ptr(),
            attrs: attrs.as_ptr(),
            attr_count: attrs.len() as u32,
            output_count: 1,
        };
        let mut out = -1;
        let api = unsafe { &*self.builder.api };
        match unsafe { (api.node)(self.builder.graph, &node, &mut out, self.err) } {
            OK => Ok(out),
            code => Err(code),
        }
    }
    pub fn add(&self, a: Value, b: Value) -> Result<Value, i32> {
        self.node(c!("Add"), &[a, b], &[])
    }
    pub fn sub(&self, a: Value, b: Value) -> Result<Value, i32> {
        self.node(c!("Sub"), &[a, b], &[])
    }
    pub fn mul(&self, a: Value, b: Value) -> Result<Value, i32> {
        self.node(c!("Mul"), &[a, b], &[])
    }
    pub fn cast(&self, x: Value, to: i32) -> Result<Value, i32> {
        self.node(c!("Cast"), &[x], &[int_attr(c!("to"), i64::from(to))])
    }

    /// A constant scalar: enters as float64, so that a run in double keeps its digits.
    pub fn scalar(&self, mut number: f64, dtype: i32) -> Result<Value, i32> {
        let tensor = Tensor {
            data: &mut number as *mut f64 as *mut c_void,
            device_type: 1, // kDLCPU
            device_id: 0,
            ndim: 0,
            dtype: [2, 64, 1, 0], // float, 64 bits, 1 lane
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let mut wide = -1;
        let api = unsafe { &*self.builder.api };
        match unsafe { (api.constant)(self.builder.graph, &tensor, &mut wide, self.err) } {
            OK => self.cast(wide, dtype),
            code => Err(code),
        }
    }
}

pub fn int_attr(name: *const c_char, i: i64) -> Attr {
    let none = std::ptr::null();
    let floats = std::ptr::null();
    let s = std::ptr::null();
    Attr { name, kind: ATTR_INT, reserved: 0, i, f: 0.0, s, ints: none, floats, count: 0 }
}
