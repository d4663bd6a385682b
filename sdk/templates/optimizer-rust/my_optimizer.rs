// SPDX-License-Identifier: Apache-2.0
//! Optimizer `my_optimizer`: gradient descent with momentum in Rust, said as nodes of the graph.
//!
//!   buf = momentum * buf + grad;   param = param - lr * buf
//!
//! Invariant: what varies by step (lr) is a value of the graph, so a plan is never rebuilt for it.
//! Change first: OPTIONS, declare_state, and the formula in `update`. gradrack.rs has the ABI.
mod gradrack;

use gradrack::*;
use std::alloc::{alloc, Layout};
use std::cmp::min;
use std::mem::size_of;
use std::os::raw::c_void;

/// One instance a parameter group.
struct MyOptimizer {
    momentum: f64,
}

/// What the YAML may say. The host checks names, types and ranges before `create`.
static OPTIONS: [OptionRow; 2] = [
    float(c!("lr"), c!("1e-2"), f64::INFINITY, c!("learning rate, before the schedule")),
    float(c!("momentum"), c!("0.9"), 1.0, c!("share of the last step kept in the next")),
];
const MOMENTUM: usize = 1; // its place in OPTIONS: values come in declared order

impl MyOptimizer {
    /// Appends the nodes of one update. Nothing runs here; the host commits the results.
    fn update(&self, g: &Graph, u: &mut Update, dtype: i32) -> Result<(), i32> {
        let buffer = unsafe { *u.states };
        let lr = g.cast(u.lr, dtype)?;
        let moved = g.add(g.mul(g.scalar(self.momentum, dtype)?, buffer)?, u.gradient)?;
        u.new_states[0] = moved;
        u.new_parameter = g.sub(u.parameter, g.mul(lr, moved)?)?;
        Ok(())
    }
}

/// Tensors that live beside the parameter; saved as "NAME.momentum_buffer".
unsafe extern "C" fn declare_state(
    _this: *mut c_void,
    info: *const ParameterInfo,
    states: *mut State,
    count: *mut u32,
    err: *mut Error,
) -> i32 {
    guarded(err, || {
        let info = &*info;
        let mut dims = [0; 8];
        let rank = info.rank as usize;
        dims[..rank].copy_from_slice(std::slice::from_raw_parts(info.dims, rank));
        *states = State {
            name: c!("momentum_buffer"),
            dtype: info.dtype,
            rank: info.rank,
            dims,
            init: Init { kind: 0, reserved: 0, a: 0.0, b: 0.0 }, // constant 0
        };
        *count = 1;
        Ok(())
    })
}

unsafe extern "C" fn build_update(
    this: *mut c_void,
    builder: *const Builder,
    update: *mut Update,
    err: *mut Error,
) -> i32 {
    guarded(err, || {
        let me = &*(this as *const MyOptimizer);
        let dtype = (*(*update).info).dtype; // float32 or what the precision plugin keeps
        me.update(&Graph::new(builder, err), &mut *update, dtype)
    })
}

/// Box::new would end the process when memory is short; the host asks for an error. (Not for a
/// struct without members: alloc wants a size.)
unsafe fn boxed(me: MyOptimizer, err: *mut Error) -> Result<*mut MyOptimizer, i32> {
    let place = alloc(Layout::new::<MyOptimizer>()) as *mut MyOptimizer;
    if place.is_null() {
        return Err(fail(err, OUT_OF_MEMORY, "no memory for an optimizer"));
    }
    place.write(me);
    Ok(place)
}

unsafe extern "C" fn destroy(this: *mut c_void) {
    drop(Box::from_raw(this as *mut MyOptimizer));
}

/// `out` is as long as the host knows it: fill what fits, say how much.
unsafe extern "C" fn create(
    _host: *const Host,
    options: *const Options,
    out: *mut Optimizer,
    err: *mut Error,
) -> i32 {
    guarded(err, || {
        let size = min((*out).struct_size as usize, size_of::<Optimizer>());
        let (items, stride) = ((*options).items as *const u8, (*options).item_stride as usize);
        let momentum = (*(items.add(MOMENTUM * stride) as *const OptionValue)).f;
        let table = Optimizer {
            struct_size: size as u32,
            flags: 0,
            this: boxed(MyOptimizer { momentum }, err)? as *mut c_void,
            destroy: Some(destroy),
            declare_state: Some(declare_state),
            build_update: Some(build_update),
            get_extension: None,
        };
        let bytes = &table as *const Optimizer as *const u8;
        std::ptr::copy_nonoverlapping(bytes, out as *mut u8, size);
        Ok(())
    })
}

const fn float(
    name: *const std::os::raw::c_char,
    default_text: *const std::os::raw::c_char,
    max: f64,
    help: *const std::os::raw::c_char,
) -> OptionRow {
    OptionRow {
        struct_size: size_of::<OptionRow>() as u32,
        flags: 0,
        name,
        kind: OPTION_FLOAT,
        list_length: 0,
        default_text,
        min: 0.0,
        max,
        choices: std::ptr::null(),
        help,
    }
}

static FACTORY: Factory = Factory {
    struct_size: size_of::<Factory>() as u32,
    flags: 0,
    kind: c!("optimizer"),
    name: c!("my_optimizer"), // `plugin: my_optimizer`
    version: c!("1.0.0"),
    help: c!("Gradient descent with momentum, in Rust."),
    options: OPTIONS.as_ptr(),
    option_count: OPTIONS.len() as u32,
    option_stride: size_of::<OptionRow>() as u32,
    probe: None,
    create: Some(create),
};

struct Factories([*const Factory; 1]);
unsafe impl Sync for Factories {}
static FACTORIES: Factories = Factories([&FACTORY]);

/// Called once: negotiates the version and lists the factories.
unsafe extern "C" fn entry(host: *const Host, out: *mut Plugin, err: *mut Error) -> i32 {
    let host = &*host;
    if host.abi_major != ABI_MAJOR || host.abi_min_minor > ABI_MINOR {
        return fail(err, VERSION, "this plugin speaks ABI 1.0: upgrade the older of the two");
    }
    let out = &mut *out; // at least as long as the host says; these members are those of 1.0
    out.abi_minor = ABI_MINOR;
    out.factory_count = 1;
    out.factories = FACTORIES.0.as_ptr();
    out.id = c!("org.example.my_optimizer"); // yours: reverse DNS
    out.version = c!("1.0.0");
    OK
}

/// The one exported symbol. It is data: the host reads it before it calls anything.
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static gradrack_plugin_v1: PluginHeader = PluginHeader {
    magic: 0x4b43_4152_4441_5247, // "GRADRACK"
    struct_size: size_of::<PluginHeader>() as u32,
    abi_major: ABI_MAJOR,
    abi_min_minor: ABI_MINOR,
    abi_max_minor: ABI_MINOR,
    entry,
};
